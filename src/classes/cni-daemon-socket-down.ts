import { affectedPods } from "../evidence/affected-pods.ts";
import type { Detected, Evidence } from "../evidence/finding.ts";
import { type CallReport, callReports, failingRemovals, isFresh, isTimeout, podOfCall } from "../evidence/reports.ts";
import { isThrottled } from "../evidence/throttling.ts";
import type { NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import { durationInWords } from "../host/text.ts";
import { cniContext } from "../logs/context.ts";
import type { CniDaemon } from "../node/types/cni.ts";
import type { PluginProcess } from "../node/types/runtime.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const cniDaemonSocketDown: ClassDefinition = {
  id: "cni-daemon-socket-down",
  code: "B13",
  sharedCause: true,
  blocksEveryCall: true,
  title: "The network add-on's node agent is down",
  explanation:
    "The plugin only forwards the request to an agent on the same node, and the agent does not listen: kube-ovn, antrea, aws-node, ovn-kubernetes, weave and others work like that. The fault is the agent's pod, not the sandbox.",
  mechanism:
    "The plugin dials a unix socket or a local port. Under containerd the two answers differ: right after a reboot “no such file or directory” is taken for success and nothing is freed; “connection refused” is not, and loops.",
  signatures: () => [
    {
      text: "dial unix /run/openvswitch/kube-ovn-daemon.sock: connect: no such file or directory",
      pattern: /kube-ovn-daemon\.sock|antrea\/cni\.sock|ovn-cni-server\.sock|spiderpool\.sock: connect/,
      unless: /server_socket is required|listen(?:ing)? on/,
      confidence: 0.95,
    },
    {
      text: 'RPC failed; Post "http://dummy/api/v1/del": … / failed to send CNI request: Post "http://dummy/": …',
      pattern:
        /post http:\/\/dummy|rpc failed; (?:(?:post|get|delete) http|(?:request|delete) ip (?:failed|post))|failed to send cni request/,
      unless: /multus\.sock|\(shim\)|plugin type=multus/,
      confidence: 0.9,
    },
    {
      text: "del cmd: error received from DelNetwork gRPC call: … dial tcp 127.0.0.1:50051: connect: connection refused",
      pattern:
        /(?:add|del)network grpc call(?:[^]{0,200}?(?:unavailable|dial|connection|deadline|\beof\b)|(?: for container \S{1,64})?[:\s.…>]{0,8}(?:r(?:pc error)?[:\s]{0,2}(?:code = ?\w{0,20})?)?[\s.…>]{0,8}$)|127\.0\.0\.1:50051/,
      within: /(?:add|del)network|(?:add|del) cmd|ipamd|aws-cni|aws-node|sandbox|networkplugin cni|plugin type=/,
      unless: /probe/,
      confidence: 0.9,
    },
    {
      text: "could not remove grpc wire: … 127.0.0.1:51111 …",
      pattern: /could not remove grpc wire|127\.0\.0\.1:51111/,
      within: /grpc wire|cni|network|sandbox|plugin/,
      confidence: 0.9,
    },
    {
      text: "dial tcp 127.0.0.1:<port>: connect: connection refused (from a plugin)",
      pattern:
        /dial tcp (?:127\.0\.0\.1|\[::1\]|localhost):(?!6443|6444|7445|8443)\d{2,5}: (?:connect: |getsockopt: |i\/o)/,
      within: cniContext,
      confidence: 0.8,
    },
    {
      text: "dial unix <agent socket>: connect: connection refused (from a plugin)",
      pattern: /dial unix \S{1,200}: connect: (?:no such file or directory|connection refused|permission denied)/,
      within: cniContext,
      unless: /(?:containerd|crio|docker|dockershim|cri-dockerd|cilium|multus|isulad)\.sock|containerd-shim/,
      level: "wrapper",
      confidence: 0.75,
      decides: "The socket's path names the agent whose pod is down.",
    },
  ],
  logFragments: ["plugin", "grpc", "ovn", "cni", "antrea", "spiderpool", "127.0.0.1:5"],
  inSnapshot:
    "The CNI configuration names the agent's socket. No process listens on it while kubelet reports that pods fail; or one does, and several plugin calls that started after it wait for it.",
  versions: {
    since: "every plugin with a daemon",
    until: "open",
    ends: "No upgrade: a daemon with memory, CPU and priority class as its load needs them.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Restart the agent's pod on this node and wait until it is Ready.",
      "Do not end the plugins that wait for it: kubelet's next attempt would hang again.",
      "Kubelet's retry, or a stop over CRI, finishes the rest.",
    ],
    gates: ["After a boot: no removal before the agent's socket exists, or the runtime forgets without freeing."],
  },
  byHand: ["Restart the network add-on's pod on this node; check its log if it does not come up."],
  danger: "Removing sandboxes while the agent is away leaks their addresses.",
  links: [
    "cozystack/cozystack#452",
    "kubeovn/kube-ovn#5836",
    "aws/amazon-vpc-cni-k8s#2487",
    "aws/amazon-vpc-cni-k8s#1590",
    "aws/amazon-vpc-cni-k8s/pull/2350",
    "antrea-io/antrea#1659",
    "antrea-io/antrea#832",
    "projectcalico/calico#7272",
  ],
  detect,
  isOver: (error, { snapshot: { cniDaemons } }) =>
    cniDaemons?.status === "read" &&
    cniDaemons.value.some(({ state, socket }) => state === "listening" && namesSocket(error, socket)),
};

/** /var/run is a link to /run. */
function namesSocket(text: string, socket: string): boolean {
  return text.includes(`unix ${socket}`) || text.includes(`unix /var${socket}`);
}

function detect(view: NodeView): readonly Detected[] {
  return daemonCalls(view).flatMap((one) =>
    // Multus has its own class.
    one.daemon.plugins.includes("multus-shim") ? [] : daemonFinding(one, view),
  );
}

/** After a boot the daemon's own pod has to start first: kubelet's failures until then are expected. */
const START_SECONDS = 120;
/** One call may hang for a reason of its own. */
const FEWEST_CALLS = 2;
/** A call normally takes seconds; several calls of this age are a finding even without a reported error. */
const LONG_CALL_SECONDS = 60;
const MAX_NAMED = 5;

/** One finding for a daemon that is down or does not answer; the plugin calls that wait for it are its consequences. */
function daemonFinding({ daemon, calls }: DaemonCalls, view: NodeView): readonly Detected[] {
  const failures = callReports(view).filter((report) => isFresh(report, view) && isAbout(report, daemon));
  const isDown = daemon.state === "dead" || daemon.state === "missing";
  const hung = calls.filter(({ ageSeconds }) => ageSeconds >= LONG_CALL_SECONDS || failures.length > 0);
  if (isDown ? failures.length === 0 && calls.length === 0 : hung.length < FEWEST_CALLS) return [];
  // Delegates that multus' CPU limit holds up are late themselves, and not the daemons that they call.
  if (!isDown && isThrottled(view.snapshot.multusDaemon?.cpu)) return [];
  if (isDown && (view.runtimeUpSeconds ?? START_SECONDS) < START_SECONDS) return [];
  const pods = [...calls.flatMap((call) => podOfCall(call, view)), ...failures.flatMap(({ pod }) => pod ?? [])];
  return [
    {
      severity: "critical",
      steps: stepsFor(daemon, isDown),
      subject: { type: "node", path: daemon.socket },
      summary: isDown
        ? `no process listens on ${daemon.socket}, the socket of ${daemon.plugins.join(", ")}: pods neither start nor stop until its daemon is back`
        : `${calls.length} calls of ${daemon.plugins.join(", ")} wait for the daemon on ${daemon.socket}, which accepts connections and does not answer: pods neither start nor stop until it is restarted`,
      evidence: [stateEvidence(daemon, view), ...calls.slice(0, MAX_NAMED).map(callEvidence), ...quoted(failures)],
      ...affectedPods(pods, view),
      // Between two of kubelet's attempts no call waits, but the next one fails as well.
      explains: [
        ...calls.map(({ sandboxId }) => sandboxId),
        ...failingRemovals(view, (report) => isAbout(report, daemon)).map(({ id }) => id),
      ],
    },
  ];
}

function stepsFor({ socket, plugins, listener }: CniDaemon, isDown: boolean): readonly string[] {
  const whose = plugins.join(", ");
  if (isDown) {
    return [
      `Bring up the pod on this node whose daemon listens on ${socket} for ${whose}: its log shows why it does not run.`,
      "kubelet's retry finishes the rest.",
    ];
  }
  const who = listener === undefined ? `the daemon on ${socket}` : `pid ${listener.pid}, the daemon on ${socket}`;
  return [
    `Restart the pod of ${who}, and wait until it is Ready.`,
    `Do not end the ${whose} processes that wait for it: kubelet's next attempt would hang again.`,
    "kubelet's retry finishes the rest.",
  ];
}

function isAbout(report: CallReport, { socket, state }: CniDaemon): boolean {
  const { code, message } = report;
  if (code === "daemon-unreachable") return message.includes(socket) || message.includes(`/var${socket}`);
  return state === "listening" && isTimeout(report);
}

function stateEvidence({ socket, state, since, listener }: CniDaemon, { snapshot }: NodeView): Evidence {
  if (state === "dead") return { source: "cni", fact: `${socket} exists, and a connection to it is refused` };
  if (state === "missing") return { source: "cni", fact: `${socket} does not exist` };
  const age =
    since === undefined ? "" : ` for ${durationInWords((snapshot.observedAt.getTime() - since.getTime()) / 1000)}`;
  const who = listener === undefined ? "a process of another pid namespace" : `pid ${listener.pid}`;
  return { source: "cni", fact: `${who} has listened on ${socket}${age}` };
}

function callEvidence({ pid, command, cniCommand, ageSeconds }: PluginProcess): Evidence {
  return {
    source: "processes",
    fact: `pid ${pid} (${command}, ${cniCommand}) waits since ${durationInWords(ageSeconds)}`,
  };
}

function quoted(failures: readonly CallReport[]): readonly Evidence[] {
  const last = failures.at(-1);
  return last === undefined
    ? []
    : [{ source: "logs", fact: `${last.by} reported ${failures.length} times, last: ${last.message}` }];
}

/** A daemon and the plugin calls that wait for it. */
interface DaemonCalls {
  readonly daemon: CniDaemon;
  /**
   * The innermost plugin of each call, oldest first: a multus shim with a hung delegate waits for the delegate's
   * daemon.
   */
  readonly calls: readonly PluginProcess[];
}

/**
 * A call that started before the daemon waits for a previous daemon: ending the call helps, and the current daemon is
 * not the cause.
 */
function daemonCalls(view: NodeView): readonly DaemonCalls[] {
  const { cniDaemons, processes } = view.snapshot;
  const daemons = cniDaemons?.status === "read" ? cniDaemons.value : [];
  if (daemons.length === 0) return [];
  const bySandbox = Map.groupBy(valueOr(processes, undefined)?.plugins ?? [], ({ sandboxId }) => sandboxId);
  const innermost = [...bySandbox.values()].flatMap((tree) => innermostOf(tree, daemons));
  return daemons.map((daemon) => ({
    daemon,
    calls: innermost
      .filter((plugin) => dials(plugin, daemon) && !isOlder(plugin, daemon))
      .toSorted((one, other) => one.startedSecondsAfterBoot - other.startedSecondsAfterBoot),
  }));
}

function innermostOf(tree: readonly PluginProcess[], daemons: readonly CniDaemon[]): readonly PluginProcess[] {
  const dialing = tree.filter((plugin) => daemons.some((daemon) => dials(plugin, daemon)));
  const last = dialing.toSorted((one, other) => other.startedSecondsAfterBoot - one.startedSecondsAfterBoot)[0];
  return last === undefined ? [] : [last];
}

/** An interpreter may run the program: then it is the second argument. */
function dials({ command }: PluginProcess, { plugins }: CniDaemon): boolean {
  const words = command.split(" ").slice(0, 2);
  return words.some((word) => plugins.includes(word.slice(word.lastIndexOf("/") + 1)));
}

function isOlder(plugin: PluginProcess, { listener }: CniDaemon): boolean {
  return listener !== undefined && plugin.startedSecondsAfterBoot < listener.startedSecondsAfterBoot;
}
