import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { until } from "../../lab/poll.ts";
import { askedOfApi, STUB_KUBECONFIG, setApiMood } from "../../lab/stub-api.ts";
import { isAllowed } from "../agent/kube/agent-roles.ts";
import { HANG_GUARD_MS, NO_REAL_NODE } from "../lab/real-node.ts";
import {
  condition,
  conditionsOf,
  eventsOf,
  ghostsOf,
  isWrite,
  kubeletReports,
  makeGhost,
  metric,
  nodeInCluster,
  policy,
  scans,
  startAgent,
} from "./clustered-agent.ts";
import { crowd } from "./crowded-cluster.ts";
import { unghostIn } from "./healed-node.ts";
import { GUARD_MS } from "./unghost.ts";

describe.skipIf(NO_REAL_NODE !== undefined)("the agent in a cluster", { timeout: HANG_GUARD_MS }, () => {
  test("publishes a ghost as condition and events, clears it after the heal, and leaves nothing behind", async () => {
    const { node, pod } = await nodeInCluster();
    const first = await startAgent(node, "observe");
    const healthy = await condition(node, "NoGhostSandboxes");
    expect(healthy).toMatchObject({ status: "False", message: "No ghost sandbox on this node" });

    const asked: string[] = [];
    // It follows the condition: the object first, then its status.
    await until("the GhostReport is there", GUARD_MS, async () => {
      asked.push(...(await askedOfApi(node)));
      const created = asked.findIndex((request) => /^PATCH .*\/ghostreports\/[^/]+\?/.test(request));
      const status = asked.findLastIndex((request) => /^PATCH .*\/ghostreports\/[^/]+\/status/.test(request));
      return (created >= 0 && status > created) || undefined;
    });
    await scans(node, 10);
    expect((await askedOfApi(node)).filter(isWrite)).toEqual([]);

    await node.kill(first);
    await sleep(1100);
    const second = await startAgent(node, "observe");
    await scans(node, 3);
    expect((await askedOfApi(node)).filter(isWrite)).toEqual([]);
    expect(ghostsOf(node)).toEqual(healthy);

    const cacheFile = await makeGhost(node, pod);
    const ghosts = await condition(node, "GhostSandboxesPresent");
    expect(ghosts).toMatchObject({
      status: "True",
      message: expect.stringMatching(/^1 ghost: 1 libcni-result-cache-corrupt; .*default\/web/),
    });
    expect(ghosts.lastTransitionTime > healthy.lastTransitionTime).toBe(true);
    const published = [`GhostDetected Node ${node.hostname} ×1`, "GhostDetected Pod web ×1"];
    await until("events are there", GUARD_MS, () => (eventsOf(node).length === 2 ? true : undefined));
    await scans(node, 5);
    expect(eventsOf(node)).toEqual(published);
    expect(existsSync(node.path(cacheFile))).toBe(true);

    await policy(node, "heal");
    expect(await condition(node, "NoGhostSandboxes")).toMatchObject({ status: "False" });
    await until("the healing is published", GUARD_MS, () => (eventsOf(node).length === 4 ? true : undefined));
    expect(eventsOf(node)).toEqual([...published, `GhostHealed Node ${node.hostname} ×1`, "GhostHealed Pod web ×1"]);

    await node.exec(["kill", "-TERM", String(second)]);
    await until("the agent has ended", GUARD_MS, async () =>
      (await node.exec(["kill", "-0", String(second)])).code === 0 ? undefined : true,
    );
    const uninstalled = await unghostIn(node, ["uninstall", "--yes", "--kubeconfig", STUB_KUBECONFIG]);
    asked.push(...(await askedOfApi(node)));
    expect(asked.filter((request) => !isAllowed(request))).toEqual([]);
    expect(uninstalled.stdout).toContain(
      `remove     the conditions GhostSandboxes and SandboxCreation of node ${node.hostname}\n`,
    );
    expect([uninstalled.code, conditionsOf(node).map(({ type }) => type)]).toEqual([0, ["Ready"]]);
  });

  test("touches nothing on a paused node, and heals when it is resumed", async () => {
    const { node, pod } = await nodeInCluster();
    await kubeletReports(node, node.hostname, { annotations: { "unghost.dev/paused": "true" } });
    await startAgent(node, "heal");
    await condition(node, "NoGhostSandboxes");
    const cacheFile = await makeGhost(node, pod);

    expect(await condition(node, "HealingPaused")).toMatchObject({
      status: "True",
      message: expect.stringContaining("nothing is healed: "),
    });
    await until("the refusal is published", GUARD_MS, () =>
      eventsOf(node).includes("GhostHealRefused Pod web ×1") ? true : undefined,
    );
    await scans(node, 5);
    expect(existsSync(node.path(cacheFile))).toBe(true);
    await kubeletReports(node, node.hostname, { conditions: conditionsOf(node) });

    await condition(node, "NoGhostSandboxes");
    expect(existsSync(node.path(cacheFile))).toBe(false);
  });

  test.each(["hang", "500"] as const)("heals with an API that answers %s, and publishes it later", async (mood) => {
    const { node, pod } = await nodeInCluster();
    await startAgent(node, "heal");
    await condition(node, "NoGhostSandboxes");
    await setApiMood(node, mood);

    const cacheFile = await makeGhost(node, pod);
    await until("the ghost is healed", GUARD_MS, () => (existsSync(node.path(cacheFile)) ? undefined : true));
    await setApiMood(node, "well");

    await until("the healing is published", GUARD_MS, () =>
      eventsOf(node).includes("GhostHealed Pod web ×1") ? true : undefined,
    );
    expect(ghostsOf(node)).toMatchObject({ status: "False" });
  });

  test("sends at most three requests per scan in a crowded cluster, and uses little memory", async () => {
    const { node, pod } = await nodeInCluster();
    await crowd(node);
    await makeGhost(node, pod);
    const agent = await startAgent(node, "observe");
    await condition(node, "GhostSandboxesPresent");
    await scans(node, 3);
    const scanCount = async (): Promise<number> => (await metric(node, "unghost_scan_duration_seconds_count")) ?? 0;

    const before = await scanCount();
    await askedOfApi(node);
    await scans(node, 20);
    const asked = (await askedOfApi(node)).length;
    const after = await scanCount();

    // A request may belong to a scan that had not ended when they were counted.
    expect(asked).toBeLessThanOrEqual(3 * (after - before + 1));
    const status = await node.check(["cat", `/proc/${agent}/status`]);
    const megabytes = Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
    console.log(`${asked} requests in ${after - before} scans, ${megabytes.toFixed(0)} MB at the peak`);
    expect(megabytes).toBeLessThan(100);
  });
});
