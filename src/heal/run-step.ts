import type { Finding } from "../classes/finding.ts";
import type { Step } from "../classes/step.ts";
import type { NodeTools } from "./node-tools.ts";
import { attempted, type StepResult } from "./step-result.ts";
import { awaitKubelet } from "./steps/await-kubelet.ts";
import { awaitSocket } from "./steps/await-socket.ts";
import { deleteLease } from "./steps/delete-lease.ts";
import { dropEmptyLease } from "./steps/drop-empty-lease.ts";
import { endProcess } from "./steps/end-process.ts";
import { multusMarker } from "./steps/multus-marker.ts";
import { quarantineStep } from "./steps/quarantine.ts";
import { releaseAddresses } from "./steps/release-addresses.ts";
import { removeNetns } from "./steps/remove-netns.ts";
import { removeSandbox } from "./steps/remove-sandbox.ts";
import { stopSandbox } from "./steps/stop-sandbox.ts";

/** Makes one step. What the runtime refuses is a result, not an exception. */
export function runStep(step: Step, finding: Finding, tools: NodeTools): Promise<StepResult> {
  return attempted(() => dispatch(step, finding, tools));
}

function dispatch(step: Step, finding: Finding, tools: NodeTools): Promise<StepResult> {
  switch (step.kind) {
    case "quarantine-file":
      return quarantineStep(step, finding, tools);
    case "await-kubelet":
      return awaitKubelet(step.sandboxId, tools);
    case "stop-sandbox":
      return stopSandbox(step.sandboxId, finding, tools);
    case "remove-sandbox":
      return removeSandbox(step.sandboxId, finding, tools);
    case "multus-marker":
      return multusMarker(step, finding, tools);
    case "end-process":
      return endProcess(step, finding, tools);
    case "release-addresses":
      return releaseAddresses(step, finding, tools);
    case "drop-empty-lease":
      return dropEmptyLease(step, finding, tools);
    case "remove-netns":
      return removeNetns(step, finding, tools);
    case "delete-lease":
      return deleteLease(step.leaseId, finding, tools);
    case "await-socket":
      return awaitSocket(step.path, tools);
    case "kick-pod":
      return import("./steps/kick-pod.ts").then(({ kickPod }) => kickPod(step, finding, tools));
    case "delete-volume-attachment":
      // Loaded only when there is a cluster to speak with.
      return import("./steps/delete-volume-attachment.ts").then(({ deleteVolumeAttachment }) =>
        deleteVolumeAttachment(step, finding, tools),
      );
  }
}

/** The steps that make the runtime call network plugins. */
export function callsPlugins(step: Step): step is Extract<Step, { kind: "stop-sandbox" | "remove-sandbox" }> {
  return step.kind === "stop-sandbox" || step.kind === "remove-sandbox";
}
