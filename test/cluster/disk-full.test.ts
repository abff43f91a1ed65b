import { statSync } from "node:fs";
import { expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import { containersOf, isReady, names, podObjects } from "../../lab/cluster/objects.ts";
import { fillDisk, freeDisk } from "../../lab/faults/full-disk.ts";
import { UNGHOST } from "../e2e/unghost.ts";
import { healthyScan } from "../support/healthy-scan.ts";
import { cluster, HANG_GUARD_MS, scanOn, unghostOn } from "./lab-cluster.ts";
import { makeGhost, resultCache, runsAgain } from "./pod-ghost.ts";

const PODS = names("web", 4);
const FULL = /The file system of \/var\/lib\/unghost is full or nearly so/;

interface History {
  readonly entries: readonly { readonly action: { readonly kind: string } }[];
}

test(
  "on a full disk scan reports the ghost, heal and agent refuse with the reason, and heal once there is space",
  async () => {
    // containerd 1.6 cannot stop a sandbox with a torn cached result.
    const story = await cluster({ runtime: "1.6", disk: "ext4" });
    const { node } = story;
    await story.apply(podObjects(PODS, node.name));
    const before = await story.waitForPods(PODS.length, isReady);
    const agent = await agentOn(node, { agent: { scanEvery: "5s", defaults: { minAge: "2s" } } });
    await agent.start();
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
    const { pid } = agent;
    await fillDisk(node.lab);

    const ghost = await makeGhost(node, "web-1");
    await fillDisk(node.lab);
    const refused = await story.waitForCondition(node, "GhostSandboxes", (one) => one.reason === "GhostHealRefused");
    expect(refused).toMatchObject({ status: "True", message: expect.stringMatching(FULL) });
    const report = await scanOn(node, "--min-age=0s");
    expect(report).toMatchObject({ verdict: "ghosts", findings: [{ subject: { sandboxId: ghost } }] });

    const healing = await unghostOn(node, "heal", "--yes", "--min-age=0s");
    expect([healing.code, healing.stderr]).toEqual([3, expect.stringMatching(FULL)]);
    expect(healing.stderr).toMatch(/^Nothing was changed: .*Free some space there/);
    expect(statSync(node.lab.path(resultCache(ghost))).size).toBe(0);
    expect(await changes()).toEqual([]);
    expect(agent.pid).toBe(pid);

    await freeDisk(node.lab);
    await runsAgain(node, "web-1", ghost);
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
    expect(agent.pid).toBe(pid);
    expect(await changes()).toContain("quarantine-file");
    const others = PODS.filter((name) => name !== "web-1");
    const after = await story.waitForPods(PODS.length, isReady);
    expect(containersOf(after, others)).toEqual(containersOf(before, others));
    await healthyScan(() => scanOn(node));

    async function changes(): Promise<readonly string[]> {
      const history: History = JSON.parse(await node.lab.check([UNGHOST, "history", "-o", "json"]));
      return history.entries.map(({ action }) => action.kind);
    }
  },
  HANG_GUARD_MS,
);
