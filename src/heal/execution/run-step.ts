import { lstatSync } from "node:fs";
import type { Finding } from "../../evidence/finding.ts";
import type { Step } from "../../evidence/step.ts";
import { resolveOnHost } from "../../host/host-paths.ts";
import type { AwaitKubeletTools } from "../steps/await-kubelet.ts";
import type { AwaitSocketTools } from "../steps/await-socket.ts";
import type { DeleteLeaseTools } from "../steps/delete-lease.ts";
import type { DropEmptyLeaseTools } from "../steps/drop-empty-lease.ts";
import type { EndProcessTools } from "../steps/end-process.ts";
import type { FreeCniLockTools } from "../steps/free-cni-lock.ts";
import type { RestartPodTools } from "../steps/kick-pod.ts";
import type { MultusMarkerTools } from "../steps/multus-marker.ts";
import type { QuarantineTools } from "../steps/quarantine-file.ts";
import type { ReleaseAddressesTools } from "../steps/release-addresses.ts";
import type { RemoveNetnsTools } from "../steps/remove-netns.ts";
import { type RemoveSandboxTools, removeSandbox } from "../steps/remove-sandbox.ts";
import type { ReplayDelTools } from "../steps/replay-del.ts";
import type { RestartDaemonTools } from "../steps/restart-daemon.ts";
import { attempted, type StepResult } from "../steps/step-result.ts";
import type { StopSandboxTools } from "../steps/stop-sandbox.ts";

/** The dependencies of all steps: each step declares its own part. */
export type StepTools = RemoveSandboxTools &
  AwaitKubeletTools &
  AwaitSocketTools &
  DeleteLeaseTools &
  DropEmptyLeaseTools &
  EndProcessTools &
  FreeCniLockTools &
  RestartPodTools &
  MultusMarkerTools &
  QuarantineTools &
  ReleaseAddressesTools &
  RemoveNetnsTools &
  ReplayDelTools &
  RestartDaemonTools &
  StopSandboxTools;

/** Executes one step. An error of the runtime is a result, not an exception. */
export function runStep(step: Step, finding: Finding, tools: StepTools): Promise<StepResult> {
  return attempted(() => dispatch(step, finding, tools));
}

/**
 * Steps are loaded on demand: most heals only remove, and some steps load half of Node's library. The cleanup after a
 * removal is mostly not needed, which is checked without loading the step.
 */
async function dispatch(step: Step, finding: Finding, tools: StepTools): Promise<StepResult> {
  switch (step.kind) {
    case "remove-sandbox":
      return await removeSandbox(step.sandboxId, finding, tools);
    case "quarantine-file": {
      if (isGone(step.path, tools)) return { kind: "unneeded" };
      const { quarantineStep } = await import("../steps/quarantine-file.ts");
      return await quarantineStep(step, finding, tools);
    }
    case "await-kubelet": {
      const { awaitKubelet } = await import("../steps/await-kubelet.ts");
      return await awaitKubelet(step.sandboxId, tools);
    }
    case "stop-sandbox": {
      const { stopSandbox } = await import("../steps/stop-sandbox.ts");
      return await stopSandbox(step.sandboxId, finding, tools);
    }
    case "multus-marker": {
      const { multusMarker } = await import("../steps/multus-marker.ts");
      return await multusMarker(step, finding, tools);
    }
    case "end-process": {
      const { endProcess } = await import("../steps/end-process.ts");
      return await endProcess(step, finding, tools);
    }
    case "free-cni-lock": {
      const { freeCniLock } = await import("../steps/free-cni-lock.ts");
      return await freeCniLock(step, finding, tools);
    }
    case "restart-daemon": {
      const { restartDaemon } = await import("../steps/restart-daemon.ts");
      return await restartDaemon(step, finding, tools);
    }
    case "release-addresses": {
      if (step.leases.every(({ path }) => isGone(path, tools))) return { kind: "unneeded" };
      const { releaseAddresses } = await import("../steps/release-addresses.ts");
      return await releaseAddresses(step, finding, tools);
    }
    case "replay-del": {
      if (isGone(step.path, tools)) return { kind: "unneeded" };
      const { replayCachedDel } = await import("../steps/replay-del.ts");
      return await replayCachedDel(step, finding, tools);
    }
    case "drop-empty-lease": {
      const { dropEmptyLease } = await import("../steps/drop-empty-lease.ts");
      return await dropEmptyLease(step, finding, tools);
    }
    case "remove-netns": {
      const { removeNetns } = await import("../steps/remove-netns.ts");
      return await removeNetns(step, finding, tools);
    }
    case "delete-lease": {
      const { deleteLease } = await import("../steps/delete-lease.ts");
      return await deleteLease(step.leaseId, finding, tools);
    }
    case "await-socket": {
      const { awaitSocket } = await import("../steps/await-socket.ts");
      return await awaitSocket(step, tools);
    }
    case "kick-pod": {
      const { restartPod } = await import("../steps/kick-pod.ts");
      return await restartPod(step, finding, tools);
    }
  }
}

/** The steps for which the runtime calls network plugins. */
export function callsPlugins(step: Step): step is Extract<Step, { kind: "stop-sandbox" | "remove-sandbox" }> {
  return step.kind === "stop-sandbox" || step.kind === "remove-sandbox";
}

/** Whether the path is absent. An unreadable path is left to the step. */
function isGone(path: string, { hostRoot }: { readonly hostRoot: string }): boolean {
  try {
    return lstatSync(resolveOnHost(hostRoot, path, "keep"), { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}
