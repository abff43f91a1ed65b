import { endWasLost } from "../../evidence/ending.ts";
import { type Finding, type Reason, reason } from "../../evidence/finding.ts";
import type { StepOf } from "../../evidence/step.ts";
import { resolveOnHost } from "../../host/paths.ts";
import { pollUntil } from "../../host/poll.ts";
import { valueOr } from "../../host/source.ts";
import type { Api } from "../../kube/api.ts";
import { withApi } from "../../kube/cluster-credentials.ts";
import { KubeError, type KubeErrorKind, orKubeError } from "../../kube/errors.ts";
import { deletePod, type FreshPod, getPod, isNamespaceIgnored } from "../../kube/pods.ts";
import { stateOfSocket } from "../../node/csi.ts";
import { probeMultusDaemon } from "../../node/multus-daemon.ts";
import type { MultusDaemon } from "../../node/types/cni.ts";
import type { SandboxId } from "../../node/types/ids.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { type Container, ContainerState, PodSandboxState } from "../../runtime/gen/runtime/v1/cri.ts";
import {
  foreignPidNamespace,
  journaled,
  type Runs,
  refused,
  type StepResult,
  type StepTools,
  stepFailed,
} from "./step-result.ts";

const POLL_MS = 250;

/** Waits, with a timeout, until a process listens again on a CSI driver's socket. */
export async function awaitSocket(
  { path, optional }: StepOf<"await-socket">,
  tools: Pick<StepTools, "hostRoot" | "waits" | "sleep" | "interruption">,
): Promise<StepResult> {
  for (let waited = 0; ; waited += POLL_MS) {
    const state = await stateOfSocket(
      resolveOnHost(tools.hostRoot, path, "keep"),
      AbortSignal.timeout(tools.waits.queryMs),
    );
    if (state === "listening") return { kind: "done" };
    if (waited >= tools.waits.socketMs || tools.interruption.stop.aborted) {
      if (optional) return { kind: "unneeded" };
      const seconds = Math.round(tools.waits.socketMs / 1000);
      return refused(
        reason("socket-not-served", `no process listened on ${path} within ${seconds} s, so no pod was restarted`),
      );
    }
    await tools.sleep(POLL_MS);
  }
}

type RestartDaemon = StepOf<"restart-daemon">;

/** A daemon that is only busy answers in between. */
const PROBES = 3;
const PROBE_PAUSE_MS = 1000;
/** The grace period of upstream's manifest; a stopped process ignores SIGTERM anyway. */
const GRACE_SECONDS = 10;

/**
 * Stops the daemon's container through the runtime. Proven right before: it does not answer repeatedly; the process
 * holds the node's socket; it is in one container, which the runtime lists as running; and a kubelet is running to
 * restart it.
 */
export async function restartDaemon(
  step: RestartDaemon,
  finding: Finding,
  tools: StepTools,
  probeDaemon: () => Promise<MultusDaemon | undefined> = () => daemonNow(tools),
): Promise<StepResult> {
  const foreign = foreignPidNamespace(tools.hostRoot);
  if (foreign !== undefined) return refused(foreign);
  for (let probe = 0; probe < PROBES; probe += 1) {
    if (probe > 0) await tools.sleep(PROBE_PAUSE_MS);
    const daemon = await probeDaemon();
    if (daemon === undefined || !isWedged(daemon)) return { kind: "unneeded" };
    if (!isSameDaemon(daemon, step)) {
      return refused(
        reason(
          "daemon-not-proven",
          `pid ${step.pid} is not proven to be who listens on ${step.socket} from within one container of the runtime`,
        ),
      );
    }
  }
  if (valueOr(await tools.facts.processesNow(), undefined)?.kubelet === undefined)
    return refused(reason("no-kubelet", "no kubelet runs that would start it again"));
  if (!(await isRunning(step, tools))) {
    return refused(
      reason(
        "container-not-running",
        `the runtime does not list container ${step.containerId.slice(0, 13)} as running in a Ready sandbox`,
      ),
    );
  }
  const { containerId, socket, pid } = step;
  return await journaled(tools, finding, { kind: "restart-daemon", containerId, socket, pid }, async () => {
    await tools.cri.stopContainer(containerId, GRACE_SECONDS, { timeoutMs: tools.waits.actMs });
    return (await answersAgain(tools, probeDaemon))
      ? { kind: "done" }
      : stepFailed(
          reason(
            "daemon-still-silent",
            `its container was stopped, and nothing answers on ${socket} after ${tools.waits.socketMs / 1000} s: check its pod with kubectl describe`,
          ),
        );
  });
}

function daemonNow({ hostRoot: root, conf, waits }: StepTools): Promise<MultusDaemon | undefined> {
  return probeMultusDaemon({ root, multus: conf?.multus, timeoutMs: waits.queryMs });
}

function isWedged({ state, process }: MultusDaemon): boolean {
  return state === "silent" || process?.isStopped === true;
}

/** Start times come from the same kernel counter, so they are exactly equal. */
function isSameDaemon({ socket, process }: MultusDaemon, step: RestartDaemon): boolean {
  return (
    socket === step.socket &&
    process?.pid === step.pid &&
    process.startedSecondsAfterBoot === step.startedSecondsAfterBoot &&
    process.containerId === step.containerId
  );
}

async function isRunning({ containerId, sandboxId }: RestartDaemon, { cri, waits }: StepTools): Promise<boolean> {
  const call = { timeoutMs: waits.queryMs };
  const [containers, sandboxes] = await Promise.all([
    cri.listContainers({ id: containerId }, call),
    cri.listPodSandbox({ id: sandboxId }, call),
  ]);
  return (
    containers.some(
      ({ id, podSandboxId, state }) =>
        id === containerId && podSandboxId === sandboxId && state === ContainerState.CONTAINER_RUNNING,
    ) && sandboxes.some(({ id, state }) => id === sandboxId && state === PodSandboxState.SANDBOX_READY)
  );
}

async function answersAgain(
  { waits, sleep }: StepTools,
  probeDaemon: () => Promise<MultusDaemon | undefined>,
): Promise<boolean> {
  const answers = async (): Promise<true | undefined> => (await probeDaemon())?.state === "answers" || undefined;
  return (await pollUntil(answers, { everyMs: PROBE_PAUSE_MS, timeoutMs: waits.socketMs, sleep })) === true;
}

type RestartPodStep = StepOf<"kick-pod">;

const DEADLINE_MS = 30_000;

/**
 * Deletes a pod, so that its controller makes it again: one that crashed for lack of what is there again, to spare it the
 * back-off; or one whose name is held by a creation that never ends.
 */
export async function restartPod(step: RestartPodStep, finding: Finding, tools: StepTools): Promise<StepResult> {
  for (let attempt = 0; ; attempt += 1) {
    const result = await orKubeError(
      withApi(tools.cluster, DEADLINE_MS, (api) => restartIn(api, step, finding, tools)),
    );
    if (!(result instanceof KubeError)) return result;
    const pauseMs = API_PAUSES_MS[attempt];
    if (pauseMs === undefined || !MAY_PASS.has(result.kind) || tools.interruption.stop.aborted) {
      return refused(
        result.kind === "no-credentials"
          ? reason("api-missing", "there is no Kubernetes API to ask")
          : reason("api-unread", `its proof is incomplete: ${result.message}`),
      );
    }
    await tools.sleep(pauseMs);
  }
}

/** An API server that starts with the node is away for some seconds, and this restart would never be tried again. */
const API_PAUSES_MS = [1000, 2000, 4000, 8000, 15_000] as const;
const MAY_PASS: ReadonlySet<KubeErrorKind> = new Set(["unreachable", "timeout", "busy"]);

async function restartIn(api: Api, step: RestartPodStep, finding: Finding, tools: StepTools): Promise<StepResult> {
  const [pod, isHeld] = await Promise.all([getPod(api, step), isNamespaceIgnored(api, step.namespace)]);
  if (pod === undefined || pod.uid !== step.uid || pod.terminating) return { kind: "unneeded" };
  const objection = isHeld
    ? reason("namespace-opted-out", "its namespace is opted out by unghost.dev/ignore")
    : objectionTo(pod, step);
  if (objection !== undefined) return refused(objection);
  // It may be running again: then there is nothing to restart.
  const isStuck =
    step.holder === undefined
      ? isInBackOff(await lastEnd(step.uid, tools), pod, step)
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
        ? refused(reason("pod-recreated", "it was recreated during the check"))
        : stepFailed(reason("api-error", error.message));
    }
  });
}

/** The holder is still being created, no plugin process explains it, and the pod still has no sandbox. */
async function isNameHeld(
  { uid }: RestartPodStep,
  holder: SandboxId,
  { cri, facts, waits }: StepTools,
): Promise<boolean> {
  const [listed, processes, ofPod] = await Promise.all([
    facts.sandbox(holder),
    facts.processes(),
    cri.listPodSandbox({ labelSelector: { "io.kubernetes.pod.uid": uid } }, { timeoutMs: waits.queryMs }),
  ]);
  if (listed !== undefined || ofPod.some(({ state }) => state === PodSandboxState.SANDBOX_READY)) return false;
  return processes.status === "read" && !processes.value.plugins.some(({ sandboxId }) => sandboxId === holder);
}

function objectionTo(pod: FreshPod, { node }: RestartPodStep): Reason | undefined {
  if (pod.node !== node) return reason("pod-elsewhere", `it lives on ${pod.node || "no node"}, not here`);
  if (pod.ignored) return reason("pod-opted-out", "it is opted out by unghost.dev/ignore");
  return pod.controller === undefined
    ? reason("pod-without-controller", "it has no controller that would recreate it")
    : undefined;
}

async function verifyRestarted(api: Api, step: RestartPodStep): Promise<StepResult> {
  const now = await getPod(api, step);
  if (now === undefined || now.uid !== step.uid || now.terminating) return { kind: "done" };
  return stepFailed(reason("pod-still-there", "its deletion was accepted, and the API still has it as it was"));
}

/** Kubelet waits before it starts the pod's containers again, or before it mounts its volumes again. */
function isInBackOff(end: LastEnd | undefined, pod: FreshPod, { waitsForVolumes }: RestartPodStep): boolean {
  if (waitsForVolumes === true) return end === undefined && pod.pending;
  if (end === "orderly") return pod.down;
  return end === undefined ? pod.down : end === "crash";
}

/**
 * - `crash`: with an error, and it was not restarted. - `orderly`: so did all that do not run; a program that lost its
 *   socket may end without an error, and be restarted ever later.
 */
type LastEnd = "crash" | "orderly" | "none";

/**
 * How the pod's containers ended, according to the runtime. The API has kubelet's last report, which after a power cut is
 * outdated. Returns undefined if the runtime has no container of the pod.
 */
async function lastEnd(podUid: string, { cri, waits }: StepTools): Promise<LastEnd | undefined> {
  const call = { timeoutMs: waits.queryMs };
  const labelSelector = { "io.kubernetes.pod.uid": podUid };
  const containers = await cri.listContainers({ labelSelector }, call);
  if (containers.length === 0) return undefined;
  let last: LastEnd = "none";
  for (const { id, state } of newestOfEachName(containers)) {
    if (state !== ContainerState.CONTAINER_EXITED) continue;
    const end = await unlessGone(cri.containerStatus(id, call));
    // A container that was lost with the node has not crashed: kubelet starts it without a back-off.
    if (end?.status === undefined || endWasLost({ state: "exited", exit: end.status })) continue;
    if (end.status.exitCode !== 0) return "crash";
    last = "orderly";
  }
  return last;
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

export const POD_STEPS = {
  "await-socket": (step, _finding, tools) => awaitSocket(step, tools),
  "restart-daemon": (step, finding, tools) => restartDaemon(step, finding, tools),
  "kick-pod": restartPod,
} satisfies Runs<"pods">;
