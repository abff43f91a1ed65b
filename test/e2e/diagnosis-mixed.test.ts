import { describe, expect } from "vitest";
import { emptyLease, leakedLease } from "../../lab/faults/host-local.ts";
import { hungAdd } from "../../lab/faults/hung-plugin.ts";
import { interruptedRun } from "../../lab/faults/interrupted-run.ts";
import { leakedContainerdLease } from "../../lab/faults/leaked-containerd-lease.ts";
import { leakedNetns, leftoverNetnsFile } from "../../lab/faults/leaked-netns.ts";
import { orphanedCache } from "../../lab/faults/orphaned-cache.ts";
import { failedRollback } from "../../lab/faults/refusing-plugin.ts";
import { emptyResultCache, halfWrittenResultCache } from "../../lab/faults/result-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { finishedPod, type LabPod, runPod, runPods } from "../../lab/pods.ts";
import { containerdRelease } from "../../lab/runtimes.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { AT_ONCE, expectUntouched, named, scan } from "./scanned-node.ts";

const containers = [{ name: "main" }];

describe.skipIf(NO_REAL_NODE !== undefined)(
  "scan of a node with many faults at once",
  { timeout: HANG_GUARD_MS },
  () => {
    eachRuntime("reports 15 ghosts of 8 classes, and none of 30 running and 10 kept pods", async (runtime) => {
      const node = await start({ runtime });
      const dead = await runPods(node, 3, { name: "dead", containers });
      const emptied = await runPods(node, 2, { name: "emptied" });
      const halved = await runPod(node, { name: "halved", containers });
      const kept = await finishedPods(node, 10);
      await node.powerCut();
      for (const pod of emptied) await emptyResultCache(node, pod);
      await halfWrittenResultCache(node, halved);
      await node.powerOn();

      const expected = [
        ...dead.map(({ sandboxId }) => `dead-after-crash/${sandboxId}`),
        ...[...emptied, halved].map(({ sandboxId }) => `${corruptClass(runtime)}/${sandboxId}`),
        ...(await halfMade(node)),
        `hostlocal-ip-leak-after-reboot/${(await leakedLease(node, "10.88.200.1")).path}`,
        `hostlocal-ip-leak-after-reboot/${(await leakedLease(node, "10.88.200.3")).path}`,
        `hostlocal-empty-ip-file/${(await emptyLease(node)).path}`,
        `cni-cache-files-orphaned/${(await orphanedCache(node)).path}`,
        `netns-and-veth-leak/${(await leakedNetns(node)).path}`,
        containerdRelease(runtime).sandboxStore
          ? `snapshot-lease-leak/${(await leakedContainerdLease(node)).sandboxId}`
          : `netns-and-veth-leak/${(await leftoverNetnsFile(node)).path}`,
        `sandbox-name-held-by-inflight-run/${(await hungAdd(node, { name: "hung" })).sandboxId}`,
      ];
      const again = kept.slice(0, 4).map(({ ref }) => runPod(node, { ...ref, attempt: 1, containers }));
      const ready = [...(await Promise.all(again)), ...(await runPods(node, 26, { name: "ready", containers }))];

      const report = await scan(node, AT_ONCE);
      expect(expected).toHaveLength(15);
      // Of those that differ from release to release, 1.7 has one less.
      expect(new Set(report.findings.map((finding) => finding.class)).size).toBe(runtime === "1.7" ? 7 : 8);
      expect(named(report)).toEqual(expected.toSorted());
      expect(report.sandboxes.ready).toBe(30);
      expect(new Set(report.kept.map(({ sandboxId }) => sandboxId))).toEqual(new Set(kept.map((pod) => pod.sandboxId)));
      expectUntouched(report, { ready, kept });
    });
  },
);

/** libcni in containerd 2.x ignores an unreadable result. */
function corruptClass(runtime: LabNode["runtime"]): string {
  return containerdRelease(runtime).corruptResultBlocks ? "libcni-result-cache-corrupt" : "dead-after-crash";
}

/** Two incomplete sandboxes, as each containerd version leaves them. */
async function halfMade(node: LabNode): Promise<readonly string[]> {
  const names: string[] = [];
  for (const name of ["half-0", "half-1"]) {
    if (containerdRelease(node.runtime).failedRollback === "stays with zero time") {
      names.push(`failed-rollback-unknown-sandbox/${(await failedRollback(node, { name }))?.sandboxId}`);
    } else {
      const { interruptedRun: outcome } = containerdRelease(node.runtime);
      const failureClass = outcome === "stays with zero time" ? "zero-createdat-record" : "dead-after-crash";
      names.push(`${failureClass}/${(await interruptedRun(node, { name })).sandboxId}`);
    }
  }
  return names;
}

async function finishedPods(node: LabNode, count: number): Promise<readonly LabPod[]> {
  const pods: LabPod[] = [];
  for (let index = 0; index < count; index++) pods.push(await finishedPod(node, { name: `finished-${index}` }));
  return pods;
}
