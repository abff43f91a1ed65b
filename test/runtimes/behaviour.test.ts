import { existsSync } from "node:fs";
import { describe, expect } from "vitest";
import { orderAtGate, refusal } from "../../lab/cni-gate.ts";
import { containerdCall, idMessage } from "../../lab/containerd-raw.ts";
import { hungAdd } from "../../lab/faults/hung-plugin.ts";
import { interruptedRun } from "../../lab/faults/interrupted-run.ts";
import { recordWithoutMetadata } from "../../lab/faults/no-metadata.ts";
import type { LabNode } from "../../lab/node.ts";
import { runPod } from "../../lab/pods.ts";
import { containerdRelease } from "../../lab/runtimes.ts";
import { parseVersion, type StopBehaviour } from "../../src/evidence/versions.ts";
import type { SandboxId } from "../../src/node/types/ids.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";

const CALLED = "/var/del-was-called";

/** What src/evidence/versions.ts claims, and what the lab's table does. */
describe.skipIf(NO_REAL_NODE !== undefined)(
  "the release behaves as unghost expects",
  { timeout: HANG_GUARD_MS },
  () => {
    eachRuntime("it is the release of the table", async (runtime) => {
      const node = await start({ runtime });

      const { runtimeVersion } = await node.cri.version(CALL);

      expect(parseVersion(runtimeVersion)).toEqual(parseVersion(containerdRelease(runtime).release));
    });

    eachRuntime("a failing DEL blocks a sandbox with a result", async (runtime) => {
      const node = await start({ runtime });
      const { sandboxId, ref } = await runPod(node, { name: "web" });

      await failDels(node, ref.name);

      expect(await stop(node, sandboxId)).toEqual({ failed: true, called: true });
    });

    eachRuntime("a failing DEL of a sandbox without a result blocks, is ignored, or is not called", async (runtime) => {
      const node = await start({ runtime });
      const { sandboxId } = await interruptedRun(node, { name: "web" });
      if (sandboxId === undefined) throw new Error("nothing is left of the interrupted run");

      await failDels(node, "web");

      const { failed, called } = await stop(node, sandboxId);
      const seen: StopBehaviour = failed
        ? "del-error-blocks"
        : called
          ? "del-tried-error-ignored-without-result"
          : "del-skipped-without-result";
      expect(seen).toBe(containerdRelease(runtime).stop);
    });

    eachRuntime("a sandbox has a record while its ADD runs", async (runtime) => {
      const node = await start({ runtime });

      const hung = await hungAdd(node, { name: "web" });

      const { sandboxStore, recordsBeforeAdd } = containerdRelease(runtime);
      const containers = await node.check(["ctr", "-n", "k8s.io", "containers", "ls", "-q"]);
      const sandboxes = sandboxStore ? await node.check(["ctr", "-n", "k8s.io", "sandboxes", "ls"]) : "";
      expect(`${containers}${sandboxes}`.includes(hung.sandboxId)).toBe(recordsBeforeAdd);
    });

    eachRuntime("a sandbox is in the sandbox store and holds a lease, or not", async (runtime) => {
      const node = await start({ runtime });

      const { sandboxId } = await runPod(node, { name: "web" });

      const isStored = await containerdCall(node, "sandbox.v1.Store/Get", idMessage(sandboxId)).then(
        () => true,
        () => false,
      );
      const leases = await node.check(["ctr", "-n", "k8s.io", "leases", "ls", "-q"]);
      const { sandboxStore, leases: hasLeases } = containerdRelease(runtime);
      expect([isStored, leases.includes(sandboxId)]).toEqual([sandboxStore, hasLeases]);
    });

    eachRuntime("a record without metadata prevents its start or does not", async (runtime) => {
      const { sandboxStore, fatalWithoutMetadata } = containerdRelease(runtime);
      const node = await start({ runtime });
      if (sandboxStore) await recordWithoutMetadata(node);

      const started = await node.restartRuntime().then(
        () => true,
        () => false,
      );
      expect(started).toBe(!fatalWithoutMetadata);
    });
  },
);

/** Leaves a file behind, so that it shows whether the plugin was called. */
async function failDels(node: LabNode, podName: string): Promise<void> {
  await orderAtGate(node, "DEL", podName, `: >${CALLED}; ${refusal("the address pool is gone")}`);
}

async function stop(node: LabNode, sandboxId: SandboxId) {
  const failed = await node.cri.stopPodSandbox(sandboxId, CALL).then(
    () => false,
    () => true,
  );
  return { failed, called: existsSync(node.path(CALLED)) };
}
