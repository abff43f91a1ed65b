import { endWasLost } from "../../evidence/ending.ts";
import type { Finding } from "../../evidence/finding.ts";
import type { Step } from "../../evidence/step.ts";
import type { Api } from "../../kube/api.ts";
import { KubeError } from "../../kube/kube-error.ts";
import { deletePod, type FreshPod, getPod, isNamespaceIgnored } from "../../kube/pods.ts";
import type { CriClient } from "../../runtime/cri.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { type Container, ContainerState, PodSandboxState } from "../../runtime/gen/runtime/v1/cri.ts";
import type { SandboxId } from "../../snapshot/ids.ts";
import type { FreshFacts } from "../execution/fresh-facts.ts";
import type { Waits } from "../execution/waits.ts";
import type { HealReason } from "../heal-reason.ts";
import { failed, type JournalTools, journaled, refused, type StepResult } from "./step-result.ts";
import { type ApiTools, withApi } from "./with-api.ts";

export interface RestartPodTools extends JournalTools, ApiTools, CrashTools {
  readonly cri: CrashTools["cri"] & Pick<CriClient, "listPodSandbox">;
  readonly facts: Pick<FreshFacts, "sandbox" | "processes">;
}

type RestartPodStep = Extract<Step, { kind: "kick-pod" }>;

const DEADLINE_MS = 30_000;

/**
 * Deletes a pod, so that its controller makes it again: one that crashed for lack of what is there again, to spare it the
 * back-off; or one whose name is held by a creation that never ends.
 */
export async function restartPod(step: RestartPodStep, finding: Finding, tools: RestartPodTools): Promise<StepResult> {
  return await withApi(tools, DEADLINE_MS, (api) => restartIn(api, step, finding, tools));
}

async function restartIn(
  api: Api,
  step: RestartPodStep,
  finding: Finding,
  tools: RestartPodTools,
): Promise<StepResult> {
  const [pod, isHeld] = await Promise.all([getPod(api, step), isNamespaceIgnored(api, step.namespace)]);
  if (pod === undefined || pod.uid !== step.uid || pod.terminating) return { kind: "unneeded" };
  const objection = isHeld ? ({ code: "namespace-opted-out" } as const) : objectionTo(pod, step);
  if (objection !== undefined) return refused(objection);
  // It may be running again: then there is nothing to restart.
  const isStuck =
    step.holder === undefined
      ? ((await hasCrashed(step.uid, tools)) ?? pod.down)
      : await isNameHeld(step, step.holder, tools);
  if (!isStuck) return { kind: "unneeded" };
  const { kind, namespace, name, uid } = step;
  return await journaled(tools, finding, { kind, namespace, name, uid }, async () => {
    try {
      await deletePod(api, step);
      return await verifyRestarted(api, step);
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      return error.kind === "conflict"
        ? refused({ code: "pod-recreated" })
        : failed({ code: "api-error", message: error.message });
    }
  });
}

/** The holder is still being created, no plugin process explains it, and the pod still has no sandbox. */
async function isNameHeld(
  { uid }: RestartPodStep,
  holder: SandboxId,
  { cri, facts, waits }: RestartPodTools,
): Promise<boolean> {
  const [listed, processes, ofPod] = await Promise.all([
    facts.sandbox(holder),
    facts.processes(),
    cri.listPodSandbox({ labelSelector: { "io.kubernetes.pod.uid": uid } }, { timeoutMs: waits.queryMs }),
  ]);
  if (listed !== undefined || ofPod.some(({ state }) => state === PodSandboxState.SANDBOX_READY)) return false;
  return processes.status === "read" && !processes.value.plugins.some(({ sandboxId }) => sandboxId === holder);
}

function objectionTo(pod: FreshPod, { node }: RestartPodStep): HealReason | undefined {
  if (pod.node !== node) return { code: "pod-elsewhere", node: pod.node };
  if (pod.ignored) return { code: "pod-opted-out" };
  return pod.controller === undefined ? { code: "pod-without-controller" } : undefined;
}

async function verifyRestarted(api: Api, step: RestartPodStep): Promise<StepResult> {
  const now = await getPod(api, step);
  if (now === undefined || now.uid !== step.uid || now.terminating) return { kind: "done" };
  return failed({ code: "pod-still-there" });
}

interface CrashTools {
  readonly cri: Pick<CriClient, "listContainers" | "containerStatus">;
  readonly waits: Pick<Waits, "queryMs">;
}

/**
 * Whether a container of the pod ended with an error and was not restarted, according to the runtime. The API has
 * kubelet's last report, which after a power cut is outdated. Returns undefined if the runtime has no container of the
 * pod.
 */
async function hasCrashed(podUid: string, { cri, waits }: CrashTools): Promise<boolean | undefined> {
  const call = { timeoutMs: waits.queryMs };
  const labelSelector = { "io.kubernetes.pod.uid": podUid };
  const containers = await cri.listContainers({ labelSelector }, call);
  if (containers.length === 0) return undefined;
  for (const { id, state } of newestOfEachName(containers)) {
    if (state !== ContainerState.CONTAINER_EXITED) continue;
    const end = await unlessGone(cri.containerStatus(id, call));
    // A container that was lost with the node has not crashed: kubelet starts it without a back-off.
    if (end?.status && end.status.exitCode !== 0 && !endWasLost({ state: "exited", exit: end.status })) return true;
  }
  return false;
}

/** Containers of one name are consecutive, in consecutive sandboxes. */
function newestOfEachName(containers: readonly Container[]): readonly Container[] {
  const newest = new Map<string, Container>();
  for (const container of containers) {
    const name = container.metadata?.name ?? "";
    const known = newest.get(name);
    if (known === undefined || known.createdAt < container.createdAt) newest.set(name, container);
  }
  return [...newest.values()];
}

async function unlessGone<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof RuntimeError && error.kind === "not-found") return undefined;
    throw error;
  }
}
