import type { Finding } from "../../classes/finding.ts";
import type { Step } from "../../classes/step.ts";
import type { Api } from "../../kube/api.ts";
import { KubeError } from "../../kube/kube-error.ts";
import { deletePod, type FreshPod, getPod, isNamespaceIgnored } from "../../kube/pods.ts";
import { PodSandboxState } from "../../runtime/gen/runtime/v1/cri.ts";
import type { SandboxId } from "../../snapshot/ids.ts";
import type { NodeTools } from "../node-tools.ts";
import { journaled, type StepResult } from "../step-result.ts";

type KickStep = Extract<Step, { kind: "kick-pod" }>;

const DEADLINE_MS = 30_000;

/**
 * Deletes a pod, so that its controller makes it anew: one that crashed for want of what is there again, to spare it the
 * back-off; or one whose name is held by a creation that never ends.
 */
export async function kickPod(step: KickStep, finding: Finding, tools: NodeTools): Promise<StepResult> {
  try {
    const api = await tools.cluster?.(DEADLINE_MS);
    if (api === undefined) return { kind: "refused", reason: "there is no Kubernetes API to ask" };
    try {
      return await kickIn(api, step, finding, tools);
    } finally {
      api.close();
    }
  } catch (error) {
    if (error instanceof KubeError) return { kind: "refused", reason: `its proof is incomplete: ${error.message}` };
    throw error;
  }
}

async function kickIn(api: Api, step: KickStep, finding: Finding, tools: NodeTools): Promise<StepResult> {
  const [pod, isHeld] = await Promise.all([getPod(api, step), isNamespaceIgnored(api, step.namespace)]);
  if (pod === undefined || pod.uid !== step.uid || pod.terminating) return { kind: "unneeded" };
  const objection = isHeld ? "its namespace is opted out by unghost.dev/ignore" : objectionTo(pod, step);
  if (objection !== undefined) return { kind: "refused", reason: objection };
  // It may have come up by itself meanwhile: then nothing is left to hurry.
  const isStuck = step.holder === undefined ? pod.down : await isNameHeld(step, step.holder, tools);
  if (!isStuck) return { kind: "unneeded" };
  const { kind, namespace, name, uid } = step;
  return await journaled(tools, finding, { kind, namespace, name, uid }, async () => {
    try {
      await deletePod(api, step);
      return await verifyKicked(api, step);
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      return error.kind === "conflict"
        ? { kind: "refused", reason: "it was made anew while it was looked at" }
        : { kind: "failed", reason: error.message };
    }
  });
}

/** The holder is still in the making, no process of a plugin explains it, and the pod has not got a sandbox after all. */
async function isNameHeld({ uid }: KickStep, holder: SandboxId, { cri, facts, waits }: NodeTools): Promise<boolean> {
  const [listed, processes, ofPod] = await Promise.all([
    facts.sandbox(holder),
    facts.processes(),
    cri.listPodSandbox({ labelSelector: { "io.kubernetes.pod.uid": uid } }, { timeoutMs: waits.lookMs }),
  ]);
  if (listed !== undefined || ofPod.some(({ state }) => state === PodSandboxState.SANDBOX_READY)) return false;
  return processes.status === "read" && !processes.value.plugins.some(({ sandboxId }) => sandboxId === holder);
}

function objectionTo(pod: FreshPod, { node }: KickStep): string | undefined {
  if (pod.node !== node) return `it lives on ${pod.node || "no node"}, not here`;
  if (pod.ignored) return "it is opted out by unghost.dev/ignore";
  return pod.controller === undefined ? "nobody would bring it back: it has no controller" : undefined;
}

async function verifyKicked(api: Api, step: KickStep): Promise<StepResult> {
  const now = await getPod(api, step);
  if (now === undefined || now.uid !== step.uid || now.terminating) return { kind: "done" };
  return { kind: "failed", reason: "its deletion was accepted, and the API still has it as it was" };
}
