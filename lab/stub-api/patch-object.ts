import { isRecord } from "./api-object.ts";

/** By content type, like a server; undefined for a patch that cannot be applied. */
export function patched(object: unknown, patch: unknown, contentType: string): unknown {
  if (contentType.startsWith("application/merge-patch+json")) return merged(object, patch, () => undefined);
  if (contentType.startsWith("application/strategic-merge-patch+json")) return merged(object, patch, mergeKey);
  if (contentType.startsWith("application/json-patch+json")) return operated(object, patch);
  // Server-side apply by one manager, who owns all of the status.
  if (contentType.startsWith("application/apply-patch+yaml"))
    return merged(withoutStatus(object), patch, () => undefined);
  return "unknown type";
}

function withoutStatus(object: unknown): unknown {
  return isRecord(object) ? { ...object, status: undefined } : object;
}

/** Lists whose entries have a key are merged by it; all others are replaced. */
const MERGE_KEYS: Readonly<Record<string, string>> = { conditions: "type", containers: "name", volumes: "name" };

function mergeKey(field: string): string | undefined {
  return MERGE_KEYS[field];
}

function merged(target: unknown, patch: unknown, keyOf: (field: string) => string | undefined): unknown {
  if (!isRecord(patch)) return patch;
  const result: Record<string, unknown> = isRecord(target) ? { ...target } : {};
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) {
      delete result[field];
      continue;
    }
    const key = keyOf(field);
    result[field] =
      Array.isArray(value) && key !== undefined
        ? mergedList(result[field], value, key, keyOf)
        : merged(result[field], value, keyOf);
  }
  return result;
}

function mergedList(
  target: unknown,
  patch: readonly unknown[],
  key: string,
  keyOf: (field: string) => string | undefined,
): readonly unknown[] {
  const list: unknown[] = Array.isArray(target) ? [...target] : [];
  for (const entry of patch) {
    const id = isRecord(entry) ? entry[key] : undefined;
    const at = list.findIndex((one) => isRecord(one) && one[key] === id);
    const isRemoval = isRecord(entry) && entry["$patch"] === "delete";
    if (isRemoval) list.splice(at === -1 ? list.length : at, 1);
    else if (at === -1) list.push(entry);
    else list[at] = merged(list[at], entry, keyOf);
  }
  return list;
}

/** The part of RFC 6902 that is used here: add, replace, remove and test. */
function operated(target: unknown, operations: unknown): unknown {
  if (!Array.isArray(operations)) return undefined;
  const copy: unknown = structuredClone(target);
  for (const operation of operations) {
    if (!isRecord(operation) || !apply(copy, operation)) return undefined;
  }
  return copy;
}

function apply(root: unknown, operation: Readonly<Record<string, unknown>>): boolean {
  const names = String(operation["path"])
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = names.pop() ?? "";
  const parent = names.reduce<unknown>((found, name) => (isContainer(found) ? found[name] : undefined), root);
  if (!isContainer(parent)) return false;
  switch (operation["op"]) {
    case "test":
      return JSON.stringify(parent[last]) === JSON.stringify(operation["value"]);
    case "add":
      if (!Array.isArray(parent)) parent[last] = operation["value"];
      else parent.splice(last === "-" ? parent.length : Number(last), 0, operation["value"]);
      return true;
    case "replace":
      parent[last] = operation["value"];
      return true;
    case "remove":
      if (Array.isArray(parent)) parent.splice(Number(last), 1);
      else delete parent[last];
      return true;
    default:
      return false;
  }
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
