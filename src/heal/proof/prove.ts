import { type Reason, reason } from "../../evidence/finding.ts";
import { type Liveness, livenessOf, nodeSigns, type Reference, referenceTo } from "../../evidence/liveness.ts";
import { livenessInWords, REFERENCES } from "../../evidence/liveness-words.ts";
import { absent, failed, read, type Source } from "../../host/source.ts";
import type { Task } from "../../node/types/runtime.ts";
import type { CriClient } from "../../runtime/cri.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { ContainerState, PodSandboxState } from "../../runtime/gen/runtime/v1/cri.ts";
import type { FreshFacts, Sleep, Waits } from "./fresh-facts.ts";

export interface ProofTools {
  readonly facts: Pick<FreshFacts, "sandbox" | "containersOf" | "processes" | "tasks">;
  readonly cri: Pick<CriClient, "podSandboxState">;
  readonly waits: Pick<Waits, "queryMs">;
}

/** The state of a sandbox immediately before it is touched. */
export type Proof =
  | { readonly state: "dead"; readonly containerIds: readonly string[] }
  | { readonly state: "gone" }
  | { readonly state: "not-dead"; readonly liveness: Exclude<Liveness, { state: "dead" }> };

export function notDead({ liveness }: Extract<Proof, { state: "not-dead" }>): Reason {
  return reason("not-dead", `not dead any more: ${livenessInWords(liveness)}`);
}

/** Reads fresh signs of life, and judges them like diagnosis. */
export async function proveDead(id: string, tools: ProofTools): Promise<Proof> {
  const { facts, cri, waits } = tools;
  const state = (await facts.sandbox(id))?.state ?? (await cri.podSandboxState(id, { timeoutMs: waits.queryMs }));
  if (state === undefined) return { state: "gone" };
  return await judge(id, state !== PodSandboxState.SANDBOX_NOTREADY, tools);
}

/**
 * The state of a container that is left without its sandbox: its own signs of life, those of all other containers with
 * the same sandbox id, and of the shim and the processes of that id.
 */
export async function proveStray(
  container: { readonly containerId: string; readonly sandboxId: string },
  tools: ProofTools,
): Promise<Proof | { readonly state: "sandbox-listed" }> {
  const { facts, cri, waits } = tools;
  const { containerId, sandboxId } = container;
  const sandbox =
    (await facts.sandbox(sandboxId)) ?? (await cri.podSandboxState(sandboxId, { timeoutMs: waits.queryMs }));
  if (sandbox !== undefined) return { state: "sandbox-listed" };
  const proof = await judge(sandboxId, false, tools);
  return proof.state === "dead" && !proof.containerIds.includes(containerId) ? { state: "gone" } : proof;
}

async function judge(id: string, isReady: boolean, tools: ProofTools): Promise<Exclude<Proof, { state: "gone" }>> {
  const { facts } = tools;
  const [containers, processes, tasks] = await Promise.all([
    facts.containersOf(id),
    facts.processes(),
    freshTasks(tools),
  ]);
  const signs = {
    isReady,
    containers: containers.map((container) => ({
      id: container.id,
      name: container.metadata?.name ?? container.id,
      isRunning: container.state === ContainerState.CONTAINER_RUNNING,
    })),
  };
  const liveness = livenessOf({ id, cri: read(signs) }, nodeSigns(tasks, processes));
  if (liveness.state !== "dead") return { state: "not-dead", liveness };
  return { state: "dead", containerIds: containers.map((container) => container.id) };
}

/** Thrown if a call was not made, because the proof was no longer valid when the call got its slot. */
export class ProofLost extends Error {
  readonly reason: Reason;

  constructor(lost: Reason) {
    super(lost.code);
    this.reason = lost;
  }
}

/** A call may have waited long for its slot, so the proof is repeated. Returns the sandbox's containers. */
export async function proveStillDead(id: string, tools: ProofTools): Promise<readonly string[]> {
  const proof = await proveDead(id, tools);
  if (proof.state === "not-dead") throw new ProofLost(notDead(proof));
  return proof.state === "dead" ? proof.containerIds : [];
}

async function freshTasks({ facts }: ProofTools): Promise<Source<readonly Task[]>> {
  try {
    const tasks = await facts.tasks();
    return tasks === undefined ? absent("the runtime is not containerd") : read(tasks);
  } catch (error) {
    if (error instanceof RuntimeError) return failed(error.message);
    throw error;
  }
}

export interface ReferenceTools {
  readonly facts: Pick<FreshFacts, "sandbox" | "processes" | "containerd" | "renew">;
  readonly waits: Pick<Waits, "pluginMs">;
  readonly sleep: Sleep;
}

/** Which source still refers to the id, by fresh facts. */
export async function findReference(id: string, tools: ReferenceTools): Promise<Reference | undefined> {
  let found = await referenceNow(id, tools);
  // The shared read may be from before this sandbox was removed, and a plugin that kubelet started before that removal
  // exits on its own.
  for (let waited = 0; found !== undefined; waited += PLUGIN_STEP_MS) {
    tools.facts.renew();
    found = await referenceNow(id, tools);
    if (found !== "plugin" || waited >= tools.waits.pluginMs) break;
    await tools.sleep(PLUGIN_STEP_MS);
  }
  return found;
}

export function stillReferenced(by: Reference): Reason {
  return reason("still-referenced", `not left behind: ${REFERENCES[by]}`);
}

const PLUGIN_STEP_MS = 100;

async function referenceNow(id: string, { facts }: Pick<ReferenceTools, "facts">): Promise<Reference | undefined> {
  const [listed, processes, containerd] = await Promise.all([facts.sandbox(id), facts.processes(), facts.containerd()]);
  return referenceTo(id, { isListed: listed !== undefined, containerd, processes });
}
