import { expect, test, vi } from "vitest";
import { askNode } from "../../src/fleet/ask-node.ts";
import { chooseCluster } from "../../src/fleet/cluster-access.ts";
import { readDashboard } from "../../src/fleet/dashboard/read.ts";
import { watchReports } from "../../src/fleet/watch-reports.ts";
import { openApi } from "../../src/kube/api.ts";
import { GHOST_HEALS as HEALS_PATH } from "../../src/kube/ghost-heal.ts";
import { listOf } from "../kube/stub-server.ts";
import { agentsTable, fleetRig, nodesTable, REPORTS_PATH, reportObject, reportsOf, tableOf } from "./fleet-rig.ts";
import { grantedBy, permissionOf } from "./permissions.ts";

/** Every user may ask who they are, what they may do, and what the API server serves. */
const EVERYBODY = [
  "authentication.k8s.io/selfsubjectreviews create",
  "authorization.k8s.io/selfsubjectaccessreviews create",
  "unghost.dev//apis/unghost.dev/v1alpha1 list",
];

/** Of a pod whose log is not needed. */
const READY = { conditions: [{ type: "Ready", status: "True" }] };
const ADMISSION = "/apis/admissionregistration.k8s.io/v1";

test("unghost-viewer grants each request of scan, why, history, watch, dashboard and doctor, and nothing else", async () => {
  const pod = { metadata: { name: "web-0", namespace: "shop", uid: "7d1f" }, spec: { nodeName: "n1" }, status: READY };
  const rig = await fleetRig({
    "/api/v1/nodes": nodesTable(["n1", "Ready"]),
    "/api/v1/pods": agentsTable(["n1", "1/1"]),
    [REPORTS_PATH]: reportsOf(reportObject("n1")),
    "/api/v1/namespaces/shop/pods/web-0": pod,
    "/api/v1/namespaces/shop/events": listOf([]),
    [`${ADMISSION}/validatingadmissionpolicies`]: tableOf(["Name"], []),
    [`${ADMISSION}/validatingadmissionpolicybindings`]: tableOf(["PolicyName"], []),
    "/api/v1/nodes/n1": { metadata: { name: "n1" } },
    [`${REPORTS_PATH}/n1`]: reportObject("n1"),
  });
  await rig.fleet("scan");
  await rig.fleet("scan", "n1", "-l", "a=b");
  await rig.fleet("why", "shop/web-0");
  await rig.fleet("why", "shop/missing");
  await rig.fleet("why", "-A", "web-0");
  await rig.fleet("history", "n1");
  await rig.fleet("doctor");
  const dashboard = await fleetRig(({ path, query }) => {
    if (path === "/api/v1/nodes") return { body: nodesTable(["n1", "Ready"]) };
    if (path !== "/api/v1/pods") return { body: listOf([]) };
    return { body: query.get("limit") === "1" ? listOf([{ metadata: { namespace: "unghost" } }]) : agentsTable() };
  });
  const opened = openApi((await chooseCluster({ kubeconfig: dashboard.kubeconfig }, {})).access, { timeoutMs: 30_000 });
  await readDashboard(opened, new Date());
  opened.close();
  const stop = new AbortController();
  const { access } = await chooseCluster({ kubeconfig: rig.kubeconfig }, {});
  const watching = watchReports({
    access,
    requestMs: 10_000,
    stop: stop.signal,
    onChange: () => undefined,
    onTrouble: () => undefined,
  });
  await vi.waitUntil(() => rig.server.asked.some(({ query }) => query.get("watch") === "true"), { timeout: 30_000 });
  stop.abort();
  await watching;

  const needed = new Set([...rig.server.asked, ...dashboard.server.asked].map(permissionOf));
  for (const permission of EVERYBODY) needed.delete(permission);
  expect([...needed].toSorted()).toEqual(grantedBy("viewer").toSorted());
});

test("unghost-healer grants each request of heal that unghost-viewer does not, and nothing else", async () => {
  const heal = `${HEALS_PATH}/n1-x`;
  const metadata = { name: "n1-x", resourceVersion: "1", creationTimestamp: "2026-03-01T12:00:00Z" };
  const rig = await fleetRig(({ method, path }) => {
    if (path === "/api/v1/nodes/n1") return { body: { metadata: { name: "n1", uid: "u" } } };
    if (method === "POST" && path === HEALS_PATH) return { body: { metadata, spec: {} } };
    if (path === heal) return { body: { metadata, spec: {} } };
    return { body: { status: { userInfo: { username: "jane" } } } };
  });
  const { access } = await chooseCluster({ kubeconfig: rig.kubeconfig }, {});
  const request = { targets: [], namespaces: [], dryRun: true, planDigest: undefined, columns: 80 };

  const reply = await askNode("n1", request, {
    access,
    requestMs: 10_000,
    readMs: 0,
    stop: new AbortController().signal,
  });

  expect(reply).toMatchObject({ kind: "unread" });
  const needed = new Set(rig.server.asked.map(permissionOf));
  for (const permission of [...grantedBy("viewer"), ...EVERYBODY]) needed.delete(permission);
  expect([...needed].toSorted()).toEqual(grantedBy("healer").toSorted());
});
