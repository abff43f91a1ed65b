import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { checkPermissions, PERMISSIONS } from "../../src/doctor/permissions.ts";

interface Role {
  readonly kind: string;
  readonly rules: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

test("doctor checks exactly what deploy/rbac grants", () => {
  const files = ["agent.yaml", "healing.yaml"].map((file) => readFileSync(`deploy/rbac/${file}`, "utf8"));
  const objects = files.flatMap((text) => parseAllDocuments(text)).map((document) => document.toJS() as Role);

  const granted = objects
    .filter(({ kind }) => kind === "ClusterRole" || kind === "Role")
    .flatMap(({ kind, rules }) => rules.flatMap((rule) => inWords(rule, kind === "Role")));

  const asked = PERMISSIONS.map(({ group, resource, verbs, inFleetNamespace = false }) => {
    return `${verbs.join(",")} ${group}/${resource} ${inFleetNamespace}`;
  });
  expect(asked.toSorted()).toEqual(granted.toSorted());
});

function inWords({ apiGroups, resources, verbs }: Role["rules"][number], inNamespace: boolean): readonly string[] {
  return apiGroups.flatMap((group) =>
    resources.map((resource) => `${verbs.join(",")} ${group}/${resource} ${inNamespace}`),
  );
}

interface Review {
  readonly spec: {
    readonly resourceAttributes: { readonly verb: string; readonly resource: string; readonly name?: string };
  };
}

/** Like the node authorizer: a node reads itself by name, and lists and watches what a field selector limits to it. */
function asNodeAuthorizer(node: string): Parameters<typeof checkPermissions>[0] {
  const allows = ({ spec: { resourceAttributes } }: Review): boolean => {
    const { verb, resource, name } = resourceAttributes;
    const isLimited = JSON.stringify(resourceAttributes).includes(`"operator":"In","values":["${node}"]`);
    if (resource === "events") return verb !== "list";
    if (resource === "pods") return verb === "delete" || isLimited;
    if (resource !== "nodes" && resource !== "csinodes") return false;
    return name === node && (isLimited || (verb !== "list" && verb !== "watch"));
  };
  const create = (_path: string, review: unknown) => Promise.resolve({ status: { allowed: allows(review as Review) } });
  return { create } as unknown as Parameters<typeof checkPermissions>[0];
}

test("with kubelet's credentials asks as its own requests do; what no node may have is not missing", async () => {
  const asker = { fleetNamespace: "unghost", nodeOfCredentials: "n1" };

  const checks = await checkPermissions(asNodeAuthorizer("n1"), asker);

  const idsWith = (status: string) => checks.filter((check) => check.status === status).map(({ id }) => id);
  expect(idsWith("missing")).toEqual([]);
  expect(idsWith("ok")).toEqual([
    "list, watch pods",
    "get, list, watch nodes",
    "patch nodes/status",
    "create, patch events",
    "get csinodes.storage.k8s.io",
    "delete pods",
  ]);
  expect(idsWith("absent")).toContain("list events");
  expect(idsWith("absent")).toContain("get, list volumeattachments.storage.k8s.io");
});

test("with other credentials a denied permission is missing", async () => {
  const checks = await checkPermissions(asNodeAuthorizer("n1"), { fleetNamespace: "unghost" });

  expect(checks.find(({ id }) => id === "get, list, watch pods")?.status).toBe("missing");
});
