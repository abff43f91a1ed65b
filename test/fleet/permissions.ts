import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { parseAddress } from "../../lab/stub-api/address.ts";
import type { Asked } from "../kube/stub-server.ts";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** What a role of deploy/rbac grants: group, resource and verb. */
export function grantedBy(role: string): readonly string[] {
  const { rules } = parse(readFileSync(`deploy/rbac/${role}.yaml`, "utf8")) as { readonly rules: readonly Rule[] };
  return rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => `${group}/${resource} ${verb}`))),
  );
}

const VERBS: Readonly<Record<string, string>> = { POST: "create", DELETE: "delete", PATCH: "patch", PUT: "update" };

export function permissionOf({ method = "", path, query }: Asked): string {
  const [, object = path, log = ""] = /^(.*)(\/log)$|^(.*?)(\/proxy)\//.exec(path)?.filter(Boolean) ?? [];
  const address = parseAddress(object);
  const [, group = ""] = /^\/apis\/([^/]+)\//.exec(path) ?? [];
  const many = query.get("watch") === "true" ? "watch" : "list";
  const reading = address?.name === undefined ? many : "get";
  return `${group}/${address?.resource ?? path}${log} ${VERBS[method] ?? reading}`;
}
