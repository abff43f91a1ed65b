import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { parseAddress } from "../../lab/stub-api/address.ts";
import type { Asked } from "../kube/stub-server.ts";
import { listOf } from "../kube/stub-server.ts";
import { agentsTable, fleetRig, nodesTable, REPORTS_PATH, reportObject, reportsOf } from "./fleet-rig.ts";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

const { rules } = parse(readFileSync("deploy/rbac/viewer.yaml", "utf8")) as { readonly rules: readonly Rule[] };

/** As the rules name it: group, resource and verb. */
function permissionOf({ method, path }: Asked): string {
  const address = parseAddress(path);
  if (method !== "GET" || address === undefined) return `${method ?? ""} ${path}`;
  const [, group = ""] = /^\/apis\/([^/]+)\//.exec(path) ?? [];
  return `${group}/${address.resource} ${address.name === undefined ? "list" : "get"}`;
}

test("unghost-viewer grants each request of scan and why, and nothing else", async () => {
  const pod = { metadata: { name: "web-0", namespace: "shop", uid: "7d1f" }, spec: { nodeName: "n1" } };
  const rig = await fleetRig({
    "/api/v1/nodes": nodesTable(["n1", "Ready"]),
    "/api/v1/pods": agentsTable(["n1", "1/1"]),
    [REPORTS_PATH]: reportsOf(reportObject("n1")),
    "/api/v1/namespaces/shop/pods/web-0": pod,
    "/api/v1/namespaces/shop/events": listOf([]),
    "/api/v1/nodes/n1": { metadata: { name: "n1" } },
    [`${REPORTS_PATH}/n1`]: reportObject("n1"),
  });
  await rig.fleet("scan");
  await rig.fleet("scan", "n1", "-l", "a=b");
  await rig.fleet("why", "shop/web-0");
  await rig.fleet("why", "shop/missing");

  const granted = rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => `${group}/${resource} ${verb}`))),
  );
  expect([...new Set(rig.server.asked.map(permissionOf))].toSorted()).toEqual(granted.toSorted());
});
