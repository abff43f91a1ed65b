import type { Finding } from "../../evidence/finding.ts";
import type { Step } from "../../evidence/step.ts";
import { valueOr } from "../../host/source.ts";
import type { CriClient } from "../../runtime/cri.ts";
import { ContainerState, PodSandboxState } from "../../runtime/gen/runtime/v1/cri.ts";
import { probeMultusDaemon } from "../../snapshot/multus-health.ts";
import { comparePidNamespace, FOREIGN_PID_NAMESPACE } from "../../snapshot/pid-namespace.ts";
import type { CniConfig, MultusDaemon } from "../../snapshot/types/cni.ts";
import type { FreshFacts } from "../execution/fresh-facts.ts";
import type { Sleep, Waits } from "../execution/waits.ts";
import { failed, type JournalTools, journaled, refused, type StepResult } from "./step-result.ts";

export interface RestartDaemonTools extends JournalTools {
  readonly hostRoot: string;
  readonly cri: Pick<CriClient, "listContainers" | "listPodSandbox" | "stopContainer">;
  readonly facts: Pick<FreshFacts, "processesNow">;
  readonly conf: Pick<CniConfig, "multus"> | undefined;
  readonly waits: Pick<Waits, "queryMs" | "actMs" | "socketMs">;
  readonly sleep: Sleep;
}

type RestartDaemon = Extract<Step, { kind: "restart-daemon" }>;

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
  tools: RestartDaemonTools,
  probeDaemon: () => Promise<MultusDaemon | undefined> = () => daemonNow(tools),
): Promise<StepResult> {
  const namespace = comparePidNamespace(tools.hostRoot);
  if (namespace.kind === "foreign") return refused({ code: FOREIGN_PID_NAMESPACE, why: namespace.reason });
  for (let probe = 0; probe < PROBES; probe += 1) {
    if (probe > 0) await tools.sleep(PROBE_PAUSE_MS);
    const daemon = await probeDaemon();
    if (daemon === undefined || !isWedged(daemon)) return { kind: "unneeded" };
    if (!isSame(daemon, step)) return refused({ code: "daemon-not-proven", socket: step.socket, pid: step.pid });
  }
  if (valueOr(await tools.facts.processesNow(), undefined)?.kubelet === undefined)
    return refused({ code: "no-kubelet" });
  if (!(await isRunning(step, tools))) return refused({ code: "container-not-running", containerId: step.containerId });
  const { containerId, socket, pid } = step;
  return await journaled(tools, finding, { kind: "restart-daemon", containerId, socket, pid }, async () => {
    await tools.cri.stopContainer(containerId, GRACE_SECONDS, { timeoutMs: tools.waits.actMs });
    return (await answersAgain(tools, probeDaemon))
      ? { kind: "done" }
      : failed({ code: "daemon-still-silent", socket, seconds: tools.waits.socketMs / 1000 });
  });
}

function daemonNow({ hostRoot: root, conf, waits }: RestartDaemonTools): Promise<MultusDaemon | undefined> {
  return probeMultusDaemon({ root, multus: conf?.multus, timeoutMs: waits.queryMs });
}

function isWedged({ state, process }: MultusDaemon): boolean {
  return state === "silent" || process?.isStopped === true;
}

/** Start times come from the same kernel counter, so they are exactly equal. */
function isSame({ socket, process }: MultusDaemon, step: RestartDaemon): boolean {
  return (
    socket === step.socket &&
    process?.pid === step.pid &&
    process.startedSecondsAfterBoot === step.startedSecondsAfterBoot &&
    process.containerId === step.containerId
  );
}

async function isRunning(
  { containerId, sandboxId }: RestartDaemon,
  { cri, waits }: RestartDaemonTools,
): Promise<boolean> {
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
  { waits, sleep }: RestartDaemonTools,
  probeDaemon: () => Promise<MultusDaemon | undefined>,
): Promise<boolean> {
  const deadline = performance.now() + waits.socketMs;
  while (performance.now() < deadline) {
    if ((await probeDaemon())?.state === "answers") return true;
    await sleep(PROBE_PAUSE_MS);
  }
  return false;
}
