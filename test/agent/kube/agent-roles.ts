import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import { parseAddress } from "../../../lab/stub-api/address.ts";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

export const AGENT_ROLES = readFileSync("deploy/rbac/agent.yaml", "utf8");
export const RULES = rulesOf("ClusterRole");
export const FLEET_RULES = rulesOf("Role");

function rulesOf(kind: string): readonly Rule[] {
  return parseAllDocuments(AGENT_ROLES)
    .map((document) => document.toJS() as { readonly kind: string; readonly rules?: readonly Rule[] })
    .flatMap((object) => (object.kind === kind ? (object.rules ?? []) : []));
}

const VERBS: Readonly<Record<string, string>> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" };

/** What a request such as `GET /api/v1/pods?watch=true` needs; undefined if it is no request of a resource. */
function neededBy(request: string) {
  const [method = "", target = ""] = request.split(" ");
  const { pathname, searchParams } = new URL(target, "http://api");
  const address = parseAddress(pathname);
  if (address === undefined) return undefined;
  const many = searchParams.get("watch") === "true" ? "watch" : "list";
  const verb = VERBS[method] ?? (address.name === undefined ? many : "get");
  const resource = address.isStatus ? `${address.resource}/status` : address.resource;
  const group = /^\/apis\/([^/]+)\//.exec(target)?.[1] ?? "";
  return { group, resource, verb, namespace: address.namespace };
}

/**
 * Whether the agent's roles allow a request, with the rules of an API server.
 */
export function isAllowed(request: string): boolean {
  const needed = neededBy(request);
  if (needed === undefined) return false;
  const { group, resource, verb, namespace } = needed;
  const rules = namespace === "unghost" ? [...RULES, ...FLEET_RULES] : RULES;
  return rules.some(
    (rule) => rule.apiGroups.includes(group) && rule.resources.includes(resource) && rule.verbs.includes(verb),
  );
}

/** Each verb of each rule. */
export const RULES_AND_VERBS = [...RULES, ...FLEET_RULES].flatMap(({ apiGroups, resources, verbs }) =>
  apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => ({ group, resource, verb })))),
);

export function isUsed(rule: (typeof RULES_AND_VERBS)[number], requests: readonly string[]): boolean {
  return requests.some((request) => {
    const needed = neededBy(request);
    return needed?.group === rule.group && needed.resource === rule.resource && needed.verb === rule.verb;
  });
}
