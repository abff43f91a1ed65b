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

/**
 * Whether the agent's roles allow a request, such as `GET /api/v1/pods?watch=true`, with the rules of an API server.
 */
export function isAllowed(request: string): boolean {
  const [method = "", target = ""] = request.split(" ");
  const { pathname, searchParams } = new URL(target, "http://api");
  const address = parseAddress(pathname);
  if (address === undefined) return false;
  const verbs: Readonly<Record<string, string>> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" };
  const many = searchParams.get("watch") === "true" ? "watch" : "list";
  const verb = verbs[method] ?? (address.name === undefined ? many : "get");
  const resource = address.isStatus ? `${address.resource}/status` : address.resource;
  const group = /^\/apis\/([^/]+)\//.exec(target)?.[1] ?? "";
  const rules = address.namespace === "unghost" ? [...RULES, ...FLEET_RULES] : RULES;
  return rules.some(
    (rule) => rule.apiGroups.includes(group) && rule.resources.includes(resource) && rule.verbs.includes(verb),
  );
}
