import { join } from "node:path";
import type { Finding } from "../../evidence/finding.ts";
import type { CriClient } from "../../runtime/cri.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import type { FreshFacts } from "../execution/fresh-facts.ts";
import { ProofLost, type ProofTools, proveDead, proveStillDead } from "../execution/prove.ts";
import type { RemovalVerifier } from "../execution/removal-verifier.ts";
import type { HealContext } from "../execution/session.ts";
import { isContention, sharedCause } from "../execution/storm-brake.ts";
import { type Turn, turnKindOf } from "../execution/turns.ts";
import type { Interruption, Waits } from "../execution/waits.ts";
import { saveLogs } from "../files/save-logs.ts";
import type { Refusal } from "../outcome.ts";
import { failed, held, journaled, reasonFor, refused, type StepResult } from "./step-result.ts";

export interface RemoveSandboxTools extends HealContext, ProofTools {
  readonly cri: ProofTools["cri"] & Pick<CriClient, "containerStatus" | "stopPodSandbox" | "removePodSandbox">;
  /** Only checked for existence: undefined if the runtime is not containerd. */
  readonly containerd: object | undefined;
  readonly facts: ProofTools["facts"] & Pick<FreshFacts, "resultFiles">;
  readonly removeVerified: RemovalVerifier;
  /** Of ended containers, from the first scan. */
  readonly logPaths: ReadonlyMap<string, string>;
  readonly waits: Pick<Waits, "queryMs" | "actMs">;
  readonly interruption: Interruption;
  readonly turn: Turn;
}

/** Releases the name through the runtime, after the network. The logs are saved before. */
export async function removeSandbox(
  sandboxId: string,
  finding: Finding,
  tools: RemoveSandboxTools,
): Promise<StepResult> {
  const proof = await proveDead(sandboxId, tools);
  if (proof.state === "gone") return { kind: "unneeded" };
  if (proof.state === "not-dead") return refused({ code: "not-dead", liveness: proof.liveness });
  const asked = await Promise.all(proof.containerIds.map((id) => logPathOf(id, tools)));
  const logPaths = asked.filter((path) => path.startsWith("/"));
  const logs =
    logPaths.length === 0 ? undefined : await saveLogs(tools, { ...reasonFor(finding), sandboxId, logPaths });
  if (logs !== undefined && logs.outcome !== "saved") {
    return refused({ code: "logs-not-saved", refusal: logs.refusal }, logs.id);
  }
  const removal = { kind: "remove-sandbox", sandboxId } as const;
  const result = await journaled(tools, finding, removal, () => remove(sandboxId, proof.containerIds, tools));
  const isSaved = result.kind === "done" && logs !== undefined && logs.saved.length > 0;
  return isSaved ? { ...result, logsSavedTo: join(tools.stateDir.quarantine, logs.id) } : result;
}

/** A container's log path never changes: what the scan has read is not requested again. */
async function logPathOf(containerId: string, { cri, logPaths, waits }: RemoveSandboxTools): Promise<string> {
  const seen = logPaths.get(containerId);
  if (seen !== undefined) return seen;
  return (await cri.containerStatus(containerId, { timeoutMs: waits.queryMs })).status?.logPath ?? "";
}

async function remove(sandboxId: string, saved: readonly string[], tools: RemoveSandboxTools): Promise<StepResult> {
  const { turn, removeVerified } = tools;
  const kind = await turnKindOf(sandboxId, tools.facts);
  const removeWhileDead = async () => {
    const unsaved = (await proveStillDead(sandboxId, tools)).find((id) => !saved.includes(id));
    if (unsaved !== undefined) throw new ProofLost({ code: "logs-not-saved", refusal: newContainer(unsaved) });
    await removeThroughRuntime(sandboxId, tools);
  };
  const result = await removeVerified(sandboxId, () => turn(removeWhileDead, kind));
  if (result === "gone") return { kind: "done" };
  if (typeof result === "object") return held(result.held);
  return failed({ code: "sandbox-still-there", left: result });
}

function newContainer(id: string): Refusal {
  return { message: `Container ${id} was created after the logs were saved.`, next: "Heal again." };
}

/**
 * containerd stops a sandbox before it removes anything. CRI-O deletes the containers first and tears the network down
 * after that: a failed DEL then leaves a sandbox that no later removal can remove until crio is restarted.
 */
async function removeThroughRuntime(sandboxId: string, tools: RemoveSandboxTools): Promise<void> {
  const { cri, containerd, waits, interruption } = tools;
  if (containerd === undefined) await stopFirst(sandboxId, tools);
  await cri.removePodSandbox(sandboxId, { timeoutMs: waits.actMs, signal: interruption.giveUp });
}

/**
 * Newer CRI-O releases a network after one failed DEL, and the next stop succeeds. What that leaves is cleaned up after
 * the removal.
 */
async function stopFirst(sandboxId: string, { cri, waits, interruption }: RemoveSandboxTools): Promise<void> {
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
