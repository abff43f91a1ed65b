import { affectedPods } from "../evidence/affected-pods.ts";
import { isOptedOut } from "../evidence/candidates.ts";
import type { Detected, Evidence } from "../evidence/finding.ts";
import {
  callReports,
  failingRemovals,
  isFresh,
  isTimeout,
  podOfCall,
  podsWaitingForNetwork,
} from "../evidence/reports.ts";
import type { Step } from "../evidence/step.ts";
import { isThrottled } from "../evidence/throttling.ts";
import { MULTUS } from "../evidence/versions.ts";
import type { NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import { durationInWords } from "../host/text.ts";
import { runtimeUnreachable } from "../logs/context.ts";
import type { MultusDaemon } from "../node/types/cni.ts";
import type { PluginProcess } from "../node/types/runtime.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const multusDaemonDownOrWedged: ClassDefinition = {
  id: "multus-daemon-down-or-wedged",
  code: "B5",
  needsMultus: true,
  sharedCause: true,
  blocksEveryCall: true,
  title: "The multus daemon is down or overrun",
  explanation:
    "Every network call on this node goes through the multus daemon, and the daemon does not answer: it is gone, stopped, or starved by its own CPU limit. Pods do not start while the node stays Ready.",
  mechanism:
    "00-multus.conf stays first in the directory while the daemon cannot start. Each waiting shim keeps the binary busy, so the init container's copy fails with “Text file busy”; the stock memory limit of 50 MiB is too small for a node full of retries. Delegates run in the daemon's cgroup, so its CPU limit is theirs: at 100m an ADD takes ten seconds where it took one, at 20m a minute, and kubelet's retries add up.",
  signatures: () => [
    {
      text: "CmdAdd (shim): timed out waiting for the condition",
      pattern:
        /cmd(?:add|del|check) \(shim\):[^]{0,200}?(?:timed out waiting|not reachable|connect: connection refused|connect: no such file|failed to send cni request|\beof\b)/,
      confidence: 0.9,
      decides:
        "The daemon is down, restarts or does not answer. If it runs and logs “/readyz … not found”, shim and daemon are of different versions (B30).",
    },
    {
      text: "CheckAPIReadyNow: Daemon not reachable over socketfile: …",
      pattern: /checkapireadynow|daemon not reachable over socket ?file/,
      confidence: 0.95,
    },
    {
      text: "cp: cannot create regular file '/host/opt/cni/bin/multus-shim': Text file busy",
      pattern: /\/multus(?:-shim)?\S{0,4}:? text file busy/,
      confidence: 0.95,
    },
    { text: "dial unix /run/multus/multus.sock: connect: …", pattern: /multus\.sock: connect/, confidence: 0.9 },
    {
      text: "Memory cgroup out of memory: Killed process <pid> (multus-daemon)",
      pattern:
        /(?:killed process \d{1,8}|oom-kill|out of memory)[^]{0,200}?multus-daemon|kube-multus\S{0,60}[^]{0,120}?oomkilled/,
      confidence: 0.9,
    },
    {
      text: 'failed to "KillPodSandbox" … DeadlineExceeded, on a node with multus',
      pattern: /(?:killpodsandbox|stoppodsandbox)[^]{0,400}?deadline ?exceeded/,
      unless: runtimeUnreachable,
      level: "symptom",
      confidence: 0.3,
      decides: "The multus pod of this node is not Ready, or many multus-shim processes wait.",
    },
    {
      text: "[error] failed to sync pod informer cache (the daemon's own log)",
      pattern: /failed to sync pod informer cache/,
      confidence: 0.75,
    },
  ],
  logFragments: ["multus", "informer cache", "shim", "checkapireadynow", "dummy", "daemon not reachable"],
  inSnapshot:
    "Multus shims wait, and the daemon's socket is gone, refuses connections, does not answer /healthz, or its cgroup is throttled during the scan while an ADD is late or kubelet has timed out.",
  versions: {
    since: "multus thick 4.0",
    until: "open",
    ends: "No upgrade. Memory of 1 GiB and a CPU limit of one core or none prevent the daemon's end under load.",
    note: "“Text file busy” only with manifests that install the shim by plain cp.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Restart the daemon's container on this node: kubelet's next attempt then succeeds. Shims that wait end with it. Allowed by name (heal --allow multus-daemon-down-or-wedged) or allowed by the agent's policy, unghost stops a container that does not answer and sees that kubelet brings it back.",
      "Where its CPU limit starves it, raise or remove the limit in the DaemonSet: its delegates run in the same cgroup.",
      "No removals by unghost until the daemon answers: each would feed the storm.",
    ],
    gates: [
      "The daemon does not answer, or is throttled, while shims wait for it.",
      "For a restart: three probes in a row without an answer, the process holds the node's multus socket, it is in one container that the runtime lists as running, and a kubelet is there to start it again.",
    ],
  },
  byHand: [
    "crictl ps --name kube-multus -q | xargs crictl stop: kubelet starts it again.",
    "kubectl -n kube-system edit ds kube-multus-ds: raise the CPU limit; after an OOM kill the memory limit.",
    "As a last resort move 00-multus.conf out of the CNI directory until the node is calm.",
  ],
  danger: "Without the multus configuration new pods start silently without their secondary networks.",
  links: [
    "siderolabs/talos#13411",
    "siderolabs/talos#12463",
    "k8snetworkplumbingwg/multus-cni#1221",
    "k8snetworkplumbingwg/multus-cni#1361",
    "k8snetworkplumbingwg/multus-cni/pull/1213",
    "kubeovn/kube-ovn#4470",
    "containerd/containerd#13326",
    "aws/amazon-vpc-cni-k8s/pull/3322",
  ],
  prevention: () =>
    `multus: from ${MULTUS.shimSwallowsDelErrorsFrom} on the thick plugin's shim answers DEL with success even while its daemon is down, so addresses leak instead of removals failing.`,
  detect,
};

/** A working shim ends within a second or two. */
const WAITING_SECONDS = 10;
/** After a boot the daemon's own pod has to start first. */
const START_SECONDS = 120;

type Trouble = "down" | "wedged" | "starved";

function detect(view: NodeView): readonly Detected[] {
  const { multusDaemon: daemon } = view.snapshot;
  if (daemon === undefined) return [];
  const shims = waitingShims(view);
  const trouble = troubleOf(daemon, shims, view);
  if (trouble === undefined) return [];
  // Between two of kubelet's attempts no shim waits, but the next one fails as well.
  const failing = failingRemovals(view, (report) => isTimeout(report) || report.code === "daemon-unreachable");
  // Every pod's network goes through the daemon, including pods that kubelet has not tried yet.
  const pods = [
    ...shims.flatMap((shim) => podOfCall(shim, view)),
    ...failing.map(({ pod }) => pod),
    ...podsWaitingForNetwork(view),
  ];
  return [
    {
      severity: "critical",
      steps: [...STEPS[trouble](daemon), "Remove no sandbox until the daemon answers: each try would feed the storm."],
      subject: { type: "node", path: daemon.socket },
      summary: SUMMARY[trouble](daemon),
      evidence: [...daemonEvidence(daemon, view), ...shimEvidence(shims)],
      ...affectedPods(pods, view),
      cure: trouble === "wedged" ? restartOf(daemon, view) : [],
      explains: [...shims.map(({ sandboxId }) => sandboxId), ...failing.map(({ id }) => id)],
    },
  ];
}

/** Only if the daemon is a container of the runtime, and its pod is not opted out. */
function restartOf({ socket, process }: MultusDaemon, view: NodeView): readonly Step[] {
  const { containers = [], sandboxes = [] } = valueOr(view.snapshot.cri, undefined) ?? {};
  const container = containers.find(({ id, state }) => id === process?.containerId && state === "running");
  const sandbox = sandboxes.find(({ id, state }) => id === container?.sandboxId && state === "ready");
  if (process === undefined || container === undefined || sandbox === undefined) return [];
  if (isOptedOut(sandbox, view)) return [];
  const { pid, startedSecondsAfterBoot } = process;
  const { id: containerId, sandboxId } = container;
  return [{ kind: "restart-daemon", socket, containerId, sandboxId, pid, startedSecondsAfterBoot }];
}

function waitingShims({ snapshot }: NodeView): readonly PluginProcess[] {
  const plugins = valueOr(snapshot.processes, undefined)?.plugins ?? [];
  return plugins
    .filter(({ ageSeconds }) => ageSeconds >= WAITING_SECONDS)
    .filter(({ command }) => command.split(" ")[0]?.split("/").at(-1) === "multus-shim");
}

function troubleOf(
  { state, cpu, process }: MultusDaemon,
  shims: readonly PluginProcess[],
  view: NodeView,
): Trouble | undefined {
  if (state === "dead" || state === "missing") {
    return shims.length > 0 || (view.runtimeUpSeconds ?? 0) >= START_SECONDS ? "down" : undefined;
  }
  if (process?.isStopped === true) return "wedged";
  // An idle daemon that does not answer immediately blocks no pod; one that answers waits for its delegates.
  if (shims.length === 0) return undefined;
  // A burst of calls reaches the limit for a while and passes; and a throttled daemon is slow to answer.
  if (isThrottled(cpu)) return isLate(shims, view) ? "starved" : undefined;
  return state === "silent" ? "wedged" : undefined;
}

/** A pod starts within seconds. A DEL may take kubelet's two minutes without keeping a pod from anything. */
const LATE_ADD_SECONDS = 30;

function isLate(shims: readonly PluginProcess[], view: NodeView): boolean {
  if (shims.some(({ cniCommand, ageSeconds }) => cniCommand === "ADD" && ageSeconds >= LATE_ADD_SECONDS)) return true;
  return callReports(view).some((report) => isTimeout(report) && isFresh(report, view));
}

const STEPS: Readonly<Record<Trouble, (daemon: MultusDaemon) => readonly string[]>> = {
  down: () => [
    "See why the daemon does not run: crictl ps --all --name kube-multus, and crictl logs of the last one.",
    "Bring its pod up on this node: kubelet's next attempt then succeeds.",
  ],
  wedged: ({ process }) => [
    `Restart the daemon's container: ${process?.containerId === undefined ? "crictl ps --name kube-multus -q | xargs crictl stop" : `crictl stop ${process.containerId.slice(0, 13)}`}; kubelet starts it again. Or: unghost heal --allow multus-daemon-down-or-wedged.`,
  ],
  starved: ({ cpu }) => [
    `Raise or remove its CPU limit of ${cpu?.milliCpu ?? 0}m: kubectl --namespace kube-system edit daemonset kube-multus-ds. Its delegates run in the same cgroup.`,
  ],
};

const SUMMARY: Readonly<Record<Trouble, (daemon: MultusDaemon) => string>> = {
  down: ({ socket }) =>
    `no process listens on ${socket}: the multus daemon is down, no pod of this node gets a network, and deleted pods leak theirs`,
  wedged: ({ socket, process }) =>
    `the multus daemon ${process === undefined ? "" : `(pid ${process.pid}) `}does not answer on ${socket}: no pod of this node starts or stops until it is restarted`,
  starved: ({ cpu }) =>
    `the multus daemon and its delegates share a CPU limit of ${cpu?.milliCpu ?? 0}m and are paused most of the time: network calls take longer than kubelet waits`,
};

function daemonEvidence({ socket, state, process, cpu }: MultusDaemon, { snapshot }: NodeView): readonly Evidence[] {
  const facts: Evidence[] = [{ source: "cni", fact: `${socket} ${STATE_WORDS[state]}` }];
  if (process === undefined) facts.push({ source: "processes", fact: "no process of root is called multus-daemon" });
  else {
    const up = valueOr(snapshot.boot, undefined)?.uptimeSeconds ?? process.startedSecondsAfterBoot;
    const age = durationInWords(Math.max(0, up - process.startedSecondsAfterBoot));
    const stopped = process.isStopped ? ", and is stopped (state T)" : "";
    facts.push({ source: "processes", fact: `multus-daemon (pid ${process.pid}) runs since ${age}${stopped}` });
  }
  if (cpu !== undefined) {
    const fact = `its cgroup may use ${cpu.milliCpu}m CPU, and was throttled for ${cpu.throttledPercent}% of the time during the scan`;
    facts.push({ source: "processes", fact });
  }
  return facts;
}

const STATE_WORDS: Readonly<Record<MultusDaemon["state"], string>> = {
  answers: "answers /healthz",
  silent: "accepts connections and does not answer /healthz",
  dead: "exists, and a connection to it is refused",
  missing: "does not exist",
  unknown: "could not be asked",
};

function shimEvidence(shims: readonly PluginProcess[]): readonly Evidence[] {
  if (shims.length === 0) return [];
  const oldest = Math.max(...shims.map(({ ageSeconds }) => ageSeconds));
  return [{ source: "processes", fact: `${shims.length} multus-shim wait, the oldest for ${durationInWords(oldest)}` }];
}
