import { type ApiObject, isRecord, type Refusal } from "./api-object.ts";

const ANY_OBJECT = ["metadata.name", "metadata.namespace"];

/** The supported field selectors, besides every object's own name. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  pods: ["spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "status.phase", "status.podIP"],
  events: ["involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid"]
    .concat(["involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath"])
    .concat(["reason", "reportingComponent", "source", "type"]),
  nodes: ["spec.unschedulable"],
  namespaces: ["status.phase"],
  ghostheals: ["spec.node"],
};

export interface Selector {
  readonly fields: string;
  readonly labels: string;
}

export function matches(object: ApiObject, { fields, labels }: Selector): boolean {
  return (
    terms(fields).every((term) => matchesField(object, term)) &&
    labelTerms(labels).every((term) => matchesLabel(object.metadata.labels ?? {}, term))
  );
}

/** An unsupported field makes the whole request invalid. */
export function wrongField(resource: string, fields: string): Refusal | undefined {
  const known = [...ANY_OBJECT, ...(FIELDS[resource] ?? [])];
  const wrong = terms(fields).find((term) => !known.includes(parseField(term).field));
  if (wrong === undefined) return undefined;
  return { code: 400, reason: "BadRequest", message: `field label not supported: ${parseField(wrong).field}` };
}

function terms(selector: string): readonly string[] {
  return selector.split(",").filter((term) => term !== "");
}

/** `a.b=x`, `a.b==x`, `a.b!=x` */
function parseField(term: string): { readonly field: string; readonly isEqual: boolean; readonly value: string } {
  const [, field = "", operator = "", value = ""] = /^([^!=]+)(!=|==|=)(.*)$/.exec(term) ?? [];
  return { field, isEqual: operator !== "!=", value };
}

function matchesField(object: ApiObject, term: string): boolean {
  const { field, isEqual, value } = parseField(term);
  return (valueAt(object, field) === value) === isEqual;
}

/** Events' `source` selects by the component in it. */
function valueAt(object: ApiObject, field: string): string {
  const path = field === "source" ? ["source", "component"] : field.split(".");
  const value = path.reduce<unknown>((found, name) => (isRecord(found) ? found[name] : undefined), object);
  return typeof value === "string" ? value : "";
}

/** Commas within parentheses belong to a set. */
function labelTerms(selector: string): readonly string[] {
  return selector
    .split(/,(?![^(]*\))/)
    .map((term) => term.trim())
    .filter((term) => term !== "");
}

/**
 * `key`, `!key`, `key=x`, `key!=x`, `key in (x,y)`, `key notin (x,y)`; an object without the key differs from every
 * value.
 */
function matchesLabel(labels: Readonly<Record<string, string>>, term: string): boolean {
  const [, setKey = "", operator = "", list = ""] = /^(\S+) (in|notin) \((.*)\)$/.exec(term) ?? [];
  if (setKey !== "") {
    const values = list.split(",").map((value) => value.trim());
    return values.includes(labels[setKey] ?? "") === (operator === "in");
  }
  if (term.includes("=")) {
    const { field, isEqual, value } = parseField(term);
    return (labels[field] === value) === isEqual;
  }
  return term.startsWith("!") ? !(term.slice(1) in labels) : term in labels;
}
