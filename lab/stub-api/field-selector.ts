export interface ApiObject {
  readonly metadata: { readonly name: string; readonly uid?: string; readonly finalizers?: readonly string[] };
  readonly [field: string]: unknown;
}

/** `a.b=x,c!=y` as the API server understands it. */
export function matches(object: ApiObject, selector: string): boolean {
  return selector
    .split(",")
    .filter((term) => term !== "")
    .every((term) => {
      const [, field = "", operator = "", value = ""] = /^([^!=]+)(!=|==|=)(.*)$/.exec(term) ?? [];
      return (valueAt(object, field) === value) === (operator !== "!=");
    });
}

/** Events' `source` selects by the component in it. */
function valueAt(object: ApiObject, field: string): string {
  const path = field === "source" ? ["source", "component"] : field.split(".");
  let value: unknown = object;
  for (const name of path) {
    value =
      typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
  }
  return typeof value === "string" ? value : "";
}
