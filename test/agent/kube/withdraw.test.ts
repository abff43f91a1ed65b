import { expect, test } from "vitest";
import { withdraw } from "../../../src/agent/kube/withdraw.ts";
import { GHOST_HEALS } from "../../../src/kube/ghost-heal.ts";
import { GHOST_REPORTS } from "../../../src/kube/ghost-report.ts";
import { memoryCluster } from "../../support/memory-cluster.ts";

const LABELS = { "app.kubernetes.io/name": "unghost", "app.kubernetes.io/component": "doctor" };
const POD = "/api/v1/namespaces/unghost/pods";
const LEASE = "/apis/coordination.k8s.io/v1/namespaces/unghost/leases";

test("removes what agents, operators and helm test have left, and nothing of others", async () => {
  const { store, open, requests } = memoryCluster();
  const ready = { type: "Ready", status: "True" };
  const own = { type: "GhostSandboxes", status: "False" };
  store.put("/api/v1/nodes/n1", { metadata: { name: "n1" }, status: { conditions: [ready, own] } });
  store.put(`${LEASE}/unghost-heal-0`, { metadata: { name: "unghost-heal-0", namespace: "unghost" } });
  store.put(`${LEASE}/theirs`, { metadata: { name: "theirs", namespace: "unghost" } });
  store.put(`${POD}/unghost-doctor`, { metadata: { name: "unghost-doctor", namespace: "unghost", labels: LABELS } });
  store.put(`${POD}/web-0`, { metadata: { name: "web-0", namespace: "unghost" } });
  const api = await open(1000);
  if (api === undefined) throw new Error("there is no cluster");

  expect(await withdraw(api, { namespace: "unghost", waitMs: 0 })).toMatchObject({ nodes: ["n1"], agents: [] });

  expect(store.entries().map(([path]) => path)).toEqual([`${POD}/web-0`, "/api/v1/nodes/n1", `${LEASE}/theirs`]);
  // Collections, which the lab's API server does not delete.
  expect(requests).toEqual(expect.arrayContaining([`DELETE ${GHOST_REPORTS}`, `DELETE ${GHOST_HEALS}`]));
  expect(store.get("/api/v1/nodes/n1")?.["status"]).toEqual({ conditions: [ready] });
});
