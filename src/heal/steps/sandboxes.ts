import { join } from "node:path";
import { type Finding, type Reason, reason } from "../../evidence/finding.ts";
import type { StepOf } from "../../evidence/step.ts";
import { pollUntil } from "../../host/poll.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { PodSandboxState } from "../../runtime/gen/runtime/v1/cri.ts";
import {
  findReference,
  notDead,
  ProofLost,
  proveDead,
  proveStillDead,
  proveStray,
  stillReferenced,
} from "../proof/prove.ts";
import { isContention, sharedCause } from "../proof/storm-brake.ts";
import { turnKindOf } from "../proof/turns.ts";
import { saveLogs } from "../quarantine/save-logs.ts";
import type { Refusal } from "../state/outcome.ts";
import {
  held,
  journaled,
  type Runs,
  reasonFor,
  refused,
  type StepResult,
  type StepTools,
  stepFailed,
} from "./step-result.ts";

const POLL_MS = 1000;

/** Waits for a running kubelet to finish: the sandbox is removed, or a newer one of the same pod becomes Ready. */
export async function awaitKubelet(sandboxId: string, tools: StepTools): Promise<StepResult> {
  const call = { timeoutMs: tools.waits.queryMs };
  const [sandbox] = await tools.cri.listPodSandbox({ id: sandboxId }, call);
  if (sandbox?.metadata === undefined) return { kind: "healed" };
  const { uid, attempt } = sandbox.metadata;
  const isFinished = async (): Promise<true | undefined> => {
    const ofPod = await tools.cri.listPodSandbox({ labelSelector: { "io.kubernetes.pod.uid": uid } }, call);
    const isGone = !ofPod.some(({ id }) => id === sandboxId);
    const isReplaced = ofPod.some(
      ({ state, metadata }) => state === PodSandboxState.SANDBOX_READY && (metadata?.attempt ?? 0) > attempt,
    );
    return isGone || isReplaced || undefined;
  };
  const { waits, interruption, sleep } = tools;
  const timing = { everyMs: POLL_MS, timeoutMs: waits.kubeletMs, stop: interruption.stop, sleep };
  return (await pollUntil(isFinished, timing)) === true ? { kind: "healed" } : { kind: "done" };
}

/** Releases network and address through the runtime; record, name and logs stay. */
export async function stopSandbox(sandboxId: string, finding: Finding, tools: StepTools): Promise<StepResult> {
  const proof = await proveDead(sandboxId, tools);
  if (proof.state === "gone") return { kind: "unneeded" };
  if (proof.state === "not-dead") return refused(notDead(proof));
  return await journaled(tools, finding, { kind: "stop-sandbox", sandboxId }, async () => {
    const call = { timeoutMs: tools.waits.actMs, signal: tools.interruption.giveUp };
    const kind = await turnKindOf(sandboxId, tools.facts);
    const objection = await tools.turn(async () => {
      await proveStillDead(sandboxId, tools);
      await tools.cri.stopPodSandbox(sandboxId, call);
    }, kind);
    return objection === undefined ? { kind: "done" } : held(objection);
  });
}

/** Releases the name through the runtime, after the network. The logs are saved before. */
export async function removeSandbox(sandboxId: string, finding: Finding, tools: StepTools): Promise<StepResult> {
  const proof = await proveDead(sandboxId, tools);
  if (proof.state === "gone") return { kind: "unneeded" };
  if (proof.state === "not-dead") return refused(notDead(proof));
  return await withLogsSaved({ sandboxId, containerIds: proof.containerIds }, finding, tools, () =>
    journaled(tools, finding, { kind: "remove-sandbox", sandboxId }, () =>
      remove(sandboxId, proof.containerIds, tools),
    ),
  );
}

/** The runtime has no sandbox of that id, so no removal of a sandbox would remove the container. */
async function removeContainer(
  { containerId, sandboxId }: StepOf<"remove-container">,
  finding: Finding,
  tools: StepTools,
): Promise<StepResult> {
  const proof = await proveStray({ containerId, sandboxId }, tools);
  if (proof.state === "gone") return { kind: "unneeded" };
  if (proof.state === "sandbox-listed") return refused(reason("sandbox-listed", "the runtime lists its sandbox"));
  if (proof.state === "not-dead") return refused(notDead(proof));
  return await withLogsSaved({ sandboxId, containerIds: [containerId] }, finding, tools, () =>
    journaled(tools, finding, { kind: "remove-container", containerId }, async () => {
      const { cri, waits, interruption } = tools;
      await cri.removeContainer(containerId, { timeoutMs: waits.actMs, signal: interruption.giveUp });
      const left = await cri.listContainers({ id: containerId }, { timeoutMs: waits.queryMs });
      if (left.length === 0) return { kind: "done" };
      return stepFailed(
        reason("container-still-there", "the runtime reported the container as removed, and still lists it"),
      );
    }),
  );
}

async function withLogsSaved(
  of: { readonly sandboxId: string; readonly containerIds: readonly string[] },
  finding: Finding,
  tools: StepTools,
  removeIt: () => Promise<StepResult>,
): Promise<StepResult> {
  const { sandboxId, containerIds } = of;
  const asked = await Promise.all(containerIds.map((id) => logPathOf(id, tools)));
  const logPaths = asked.filter((path) => path.startsWith("/"));
  const logs =
    logPaths.length === 0 ? undefined : await saveLogs(tools, { ...reasonFor(finding), sandboxId, logPaths });
  if (logs !== undefined && logs.outcome !== "saved") {
    return refused(logsNotSaved(logs.refusal), logs.id);
  }
  const result = await removeIt();
  const isSaved = result.kind === "done" && logs !== undefined && logs.saved.length > 0;
  return isSaved ? { ...result, logsSavedTo: join(tools.stateDir.quarantine, logs.id) } : result;
}

/** A container's log path never changes: what the scan has read is not requested again. */
async function logPathOf(containerId: string, { cri, logPaths, waits }: StepTools): Promise<string> {
  const seen = logPaths.get(containerId);
  if (seen !== undefined) return seen;
  return (await cri.containerStatus(containerId, { timeoutMs: waits.queryMs })).status?.logPath ?? "";
}

async function remove(sandboxId: string, saved: readonly string[], tools: StepTools): Promise<StepResult> {
  const { turn, removeVerified } = tools;
  const kind = await turnKindOf(sandboxId, tools.facts);
  const removeWhileDead = async () => {
    const unsaved = (await proveStillDead(sandboxId, tools)).find((id) => !saved.includes(id));
    if (unsaved !== undefined) throw new ProofLost(logsNotSaved(newContainer(unsaved)));
    await removeThroughRuntime(sandboxId, tools);
  };
  const result = await removeVerified(sandboxId, () => turn(removeWhileDead, kind));
  if (result === "gone") return { kind: "done" };
  if (typeof result === "object") return held(result.held);
  return stepFailed(
    reason(
      "sandbox-still-there",
      `the runtime reported the sandbox as removed, and still ${result === "listed" ? "knows it" : "has its record"}`,
    ),
  );
}

function logsNotSaved({ message, next }: Refusal): Reason {
  return reason("logs-not-saved", `${message} ${next}`);
}

function newContainer(id: string): Refusal {
  return { message: `Container ${id} was created after the logs were saved.`, next: "Heal again." };
}

/**
 * containerd stops a sandbox before it removes anything. CRI-O deletes the containers first and tears the network down
 * after that: a failed DEL then leaves a sandbox that no later removal can remove until crio is restarted.
 */
async function removeThroughRuntime(sandboxId: string, tools: StepTools): Promise<void> {
  const { cri, containerd, waits, interruption } = tools;
  if (containerd === undefined) await stopFirst(sandboxId, tools);
  await cri.removePodSandbox(sandboxId, { timeoutMs: waits.actMs, signal: interruption.giveUp });
}

/**
 * Newer CRI-O releases a network after one failed DEL, and the next stop succeeds. What that leaves is cleaned up after
 * the removal.
 */
async function stopFirst(sandboxId: string, { cri, waits, interruption }: StepTools): Promise<void> {
  const call = { timeoutMs: waits.actMs, signal: interruption.giveUp };
  try {
    await cri.stopPodSandbox(sandboxId, call);
  } catch (error) {
    if (interruption.stop.aborted || !maySucceedOnRetry(error)) throw error;
    await cri.stopPodSandbox(sandboxId, call);
  }
}

/** A failure with a cause outside the sandbox is left to the storm brake, and a held lock is waited for. */
function maySucceedOnRetry(error: unknown): boolean {
  if (!(error instanceof RuntimeError) || error.kind !== "refused") return false;
  return !isContention(error.text) && sharedCause(error.text) === undefined;
}

/** Deletes the containerd lease of a sandbox that no longer exists. */
export async function deleteLease(leaseId: string, finding: Finding, tools: StepTools): Promise<StepResult> {
  const { containerd } = tools;
  if (containerd === undefined) return { kind: "unneeded" };
  const reference = await findReference(leaseId, tools);
  if (reference !== undefined) return refused(stillReferenced(reference));
  return await journaled(tools, finding, { kind: "delete-lease", lease: leaseId }, async () => {
    try {
      await containerd.deleteLease(leaseId, { timeoutMs: tools.waits.queryMs });
    } catch (error) {
      // The runtime's own rollback was faster.
      if (!(error instanceof RuntimeError && error.kind === "not-found")) throw error;
    }
    return { kind: "done" };
  });
}

const CALL_MS = 30_000;

/** Through containerd's own API: no record is edited behind its back. */
async function deleteRecord(
  { record, store }: StepOf<"delete-record">,
  finding: Finding,
  tools: StepTools,
): Promise<StepResult> {
  const opened = await tools.records?.open(tools);
  if (opened?.kind !== "open") {
    return stepFailed(reason("runtime-error", opened?.reason ?? "no runtime was started over these records"));
  }
  const { containerd, copy } = opened;
  return await journaled(tools, finding, { kind: "delete-record", record, copy }, async () => {
    const call = { timeoutMs: CALL_MS };
    if (store === "containers") await containerd.deleteContainer(record, call);
    else await containerd.deleteSandbox(record, call);
    return { kind: "done" };
  });
}

export const SANDBOX_STEPS = {
  "await-kubelet": ({ sandboxId }, _finding, tools) => awaitKubelet(sandboxId, tools),
  "stop-sandbox": ({ sandboxId }, finding, tools) => stopSandbox(sandboxId, finding, tools),
  "remove-sandbox": ({ sandboxId }, finding, tools) => removeSandbox(sandboxId, finding, tools),
  "remove-container": removeContainer,
  "delete-record": deleteRecord,
  "delete-lease": ({ leaseId }, finding, tools) => deleteLease(leaseId, finding, tools),
} satisfies Runs<"sandboxes">;
