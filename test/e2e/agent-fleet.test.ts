import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { finishedPod } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { apiHas, objectFile } from "../../lab/stub-api.ts";
import { HANG_GUARD_MS, NO_REAL_NODE } from "../lab/real-node.ts";
import {
  condition,
  kubeletReports,
  logged,
  makeGhost,
  metric,
  nodeInCluster,
  scans,
  startAgent,
} from "./clustered-agent.ts";
import { listedIds } from "./healed-node.ts";
import { GUARD_MS } from "./unghost.ts";

/** Checked again after 30 to 45 seconds, and then again by the waiting node. */
const BREAKER_MS = 240_000;
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/unghost/leases";

describe.skipIf(NO_REAL_NODE !== undefined)("the agent in a fleet", { timeout: HANG_GUARD_MS }, () => {
  test("touches nothing while most of the fleet is newly unhealthy, reports it everywhere, and heals afterwards", async () => {
    const { node, pod } = await nodeInCluster();
    const others = Array.from({ length: 9 }, (_, index) => `other-${index}`);
    const report = async (unhealthy: number): Promise<void> => {
      const now = new Date().toISOString();
      const times = { lastHeartbeatTime: now, lastTransitionTime: now };
      for (const [index, name] of others.entries()) {
        const status = index < unhealthy ? "True" : "False";
        await kubeletReports(node, name, { conditions: [{ type: "GhostSandboxes", status, ...times }] });
      }
    };
    await report(6);
    await startAgent(node, "heal");
    await condition(node, "NoGhostSandboxes");

    const cacheFile = await makeGhost(node, pod);

    const open = await condition(node, "BreakerOpen");
    expect(open.message).toMatch(/nothing is healed: \d of 10 nodes became unhealthy within 10 minutes/);
    await until("the metric says so", GUARD_MS, async () =>
      (await metric(node, "unghost_circuit_breaker_open")) === 1 ? true : undefined,
    );
    expect(logged(node, "breaker opened")).toBe(true);
    await scans(node, 5);
    expect(existsSync(node.path(cacheFile))).toBe(true);

    await report(0);

    await condition(node, "NoGhostSandboxes", BREAKER_MS);
    expect([await metric(node, "unghost_circuit_breaker_open"), logged(node, "breaker closed")]).toEqual([0, true]);
    expect(existsSync(node.path(cacheFile))).toBe(false);
  });

  test("waits with disruptive actions while all heal slots are taken", async () => {
    const { node } = await nodeInCluster();
    const slots = ["0", "1", "2"].map((number) => `unghost-heal-${number}`);
    const hold = (name: string, holder: object): Promise<void> =>
      apiHas(node, `${LEASES}/${name}`, {
        metadata: { name, namespace: "unghost" },
        spec: { ...holder, leaseDurationSeconds: 3600 },
      });
    for (const [index, name] of slots.entries()) await hold(name, { holderIdentity: `other-${index}` });
    const before = await listedIds(node);
    for (let index = 0; index < 7; index++) await finishedPod(node, { name: `deleted-${index}` });
    await startAgent(node, "heal");

    expect((await condition(node, "GhostSandboxesPresent")).message).toContain("7 ghosts: 7 pod-gone");
    await until("it says that it waits", GUARD_MS, () => (logged(node, "other-1") ? true : undefined));
    await scans(node, 5);
    expect(await listedIds(node)).toHaveLength(before.length + 7);
    await hold("unghost-heal-1", {});

    await condition(node, "NoGhostSandboxes", BREAKER_MS);
    expect(await listedIds(node)).toEqual(before);
    await until("the slot is given back", GUARD_MS, () => {
      const { spec } = JSON.parse(readFileSync(objectFile(node, `${LEASES}/unghost-heal-1`), "utf8"));
      return spec.leaseTransitions === 2 && spec.holderIdentity === undefined ? true : undefined;
    });
  });
});
