import { eachPaced } from "../host/concurrency.ts";
import { hostPath } from "../host/paths.ts";
import { type CniEnviron, isStopped, type ProcessStat, parseCniArgs, procLink } from "../host/proc.ts";
import { failed, type Oddity, read, type Source, valueOr } from "../host/source.ts";
import { printable } from "../host/text.ts";
import { containerIdsOf, isOtherEngines } from "./cgroup-path.ts";
import { isKubeletName } from "./kubelet-process.ts";
import { pluginOrigins } from "./plugin-origin.ts";
import { type ProcessTable } from "./process-table.ts";
import { findRuntimeProcess, isRuntimeName, socketComparer } from "./runtime-process.ts";
import {
  isRootsService,
  type ProcessProver,
  type ProcessTraces,
  processProver,
  readTraces,
} from "./trusted-process.ts";
import { isFullId, podUid, sandboxId } from "./types/ids.ts";
import type { PluginOrigin, PluginProcess, ProcessFacts, ProcessId, ProcessRef, ShimProcess } from "./types/runtime.ts";

/** The scanned runtime: other runtimes on the same machine are ignored. */
export interface OurRuntime {
  /** As this process opens it. */
  readonly socketPath: string;
  /** As paths of the node; the runtime reports them, which may take a moment. */
  readonly cniBinDirs: readonly string[] | Promise<readonly string[]>;
  /** Shims with an address belong to containerd, those without (conmon) to another runtime; missing if unknown. */
  readonly isContainerd?: boolean | Promise<boolean>;
}

export interface ProcessesQuery {
  readonly root: string;
  readonly table: Source<ProcessTable>;
  /** Missing while it is down: then every shim of Kubernetes counts, and no process is known to be a plugin. */
  readonly runtime?: OurRuntime;
  readonly signal?: AbortSignal;
}

const PERMISSION_DENIED = "permission-denied";

/** The node's processes that concern sandboxes. */
export async function readProcesses(query: ProcessesQuery): Promise<Source<ProcessFacts>> {
  const { table, signal } = query;
  if (table.status !== "read") return table;
  const proc = hostPath(query.root, "/proc");
  const { processes } = table.value;

  const found: (ProcessTraces | undefined)[] = [];
  const sleepers: Promise<ProcessTraces | undefined>[] = [];
  const finished = await eachPaced(processes, signal, (stat) => {
    const traces = readTraces(proc, stat);
    if (traces instanceof Promise) sleepers.push(traces);
    else found.push(traces);
  });
  const traces = [...found, ...(await Promise.all(sleepers))].filter((trace) => trace !== undefined);
  if (!finished) return failed(`the ${processes.length} processes in ${proc} were not all read in time`);

  const hidden = traces.filter((trace) => trace.hidden !== undefined);
  if (arePluginsHidden(hidden, traces)) {
    return failed(
      `${hidden.length} of ${traces.length} processes: permission denied; a hung network plugin would not be found`,
      "run unghost as root, or give it CAP_SYS_PTRACE and the capabilities of the runtime",
      PERMISSION_DENIED,
    );
  }
  return read(
    await factsOf(traces, query, table.value),
    hidden.map((trace) => oddityOf(proc, trace)),
  );
}

/** Plugins inherit from the runtime who may read them. If most processes are hidden, unghost does not run as root. */
function arePluginsHidden(hidden: readonly ProcessTraces[], all: readonly ProcessTraces[]): boolean {
  const denied = hidden.filter((trace) => trace.hidden === "denied");
  return denied.length * 2 > all.length || denied.some(({ stat }) => isRuntimeName(stat.comm));
}

function oddityOf(proc: string, { stat, hidden }: ProcessTraces): Oddity {
  const name = `${printable(stat.comm)} (pid ${stat.pid})`;
  const path = `${proc}/${stat.pid}`;
  return hidden === "timeout"
    ? { path, reason: `${name} is in uninterruptible sleep and holds its memory locked` }
    : { path, reason: `${name} cannot be read: permission denied`, code: PERMISSION_DENIED };
}

async function factsOf(
  traces: readonly ProcessTraces[],
  query: ProcessesQuery,
  { uptimeSeconds }: ProcessTable,
): Promise<ProcessFacts> {
  const prover = processProver(query.root);
  const byContainer = new Map<string, number[]>();
  const othersIds = new Set<string>();
  const children = new Map<number, number[]>();
  const netnsInodes = new Set<bigint>();
  const netnsUnread: number[] = [];
  for (const { stat, cgroup, netns } of traces) {
    const paths = prover.cgroupOf(cgroup);
    const isOthers = isOtherEngines(paths);
    for (const id of containerIdsOf(paths)) {
      if (isOthers) othersIds.add(id);
      else append(byContainer, id, stat.pid);
    }
    append(children, stat.parentPid, stat.pid);
    if (netns === "denied") netnsUnread.push(stat.pid);
    else if (netns !== undefined) netnsInodes.add(netns);
  }
  const plugins = await provenPlugins(traces, query, prover);
  const { ours, others } = sortShims(traces, query, prover, await query.runtime?.isContainerd);
  for (const { shim } of others) othersIds.add(shim.id);
  return {
    plugins: plugins.map((plugin) => pluginOf(plugin, uptimeSeconds, query.root)),
    shims: ours.map(
      ({ stat, shim }): ShimProcess => ({
        ...refOf(stat, uptimeSeconds),
        id: shim.id,
        isStopped: isStopped(stat) || undefined,
        childPids: children.get(stat.pid) ?? [],
      }),
    ),
    byContainer,
    netnsInodes,
    ...(netnsUnread.length === 0 ? {} : { netnsUnread }),
    ...(othersIds.size === 0 ? {} : { othersIds }),
    kubelet: findKubelet(traces, prover),
  };
}

interface ProvenPlugin {
  readonly stat: ProcessStat;
  readonly cni: CniEnviron;
  readonly argv: readonly string[];
  readonly origin: PluginOrigin;
}

/** Only processes with CNI variables are examined further. */
async function provenPlugins(
  traces: readonly ProcessTraces[],
  { root, table, runtime, signal }: ProcessesQuery,
  prover: ProcessProver,
): Promise<readonly ProvenPlugin[]> {
  const candidates = traces.filter(({ cni }) => cni !== undefined && isFullId(cni.containerId));
  if (candidates.length === 0 || runtime === undefined) return [];
  const { socketPath, cniBinDirs } = runtime;
  const process = await findRuntimeProcess({ root, socketPath, table, signal });
  const originOf = pluginOrigins({
    root,
    processes: valueOr(table, undefined)?.processes ?? [],
    prover,
    runtimePid: valueOr(process, undefined)?.pid,
    cniBinDirs: await cniBinDirs,
  });
  return candidates.flatMap(({ stat, cni, argv }) => {
    const origin = originOf(stat, argv);
    return cni === undefined || origin === undefined ? [] : [{ stat, cni, argv, origin }];
  });
}

type ShimTraces = ProcessTraces & { readonly shim: NonNullable<ProcessTraces["shim"]> };

/** Proven shims. A process that only has the name of one, as anything in a pod may, proves nothing. */
function sortShims(
  traces: readonly ProcessTraces[],
  { root, runtime }: ProcessesQuery,
  prover: ProcessProver,
  isContainerd: boolean | undefined,
): { readonly ours: readonly ShimTraces[]; readonly others: readonly ShimTraces[] } {
  const shims = traces
    .filter((one): one is ShimTraces => one.shim !== undefined)
    .filter((one) => prover.proveShim(one, one.shim.id).kind === "trusted");
  const isOurSocket = runtime === undefined ? () => true : socketComparer(root, runtime.socketPath);
  const isOurs = ({ stat, shim }: ShimTraces): boolean => {
    if (!shim.isKubernetes) return false;
    return shim.address === undefined ? isContainerd !== true : isOurSocket(stat.pid, shim.address);
  };
  const { true: ours = [], false: others = [] } = Object.groupBy(shims, (one) => (isOurs(one) ? "true" : "false"));
  return { ours, others };
}

function pluginOf({ stat, cni, argv, origin }: ProvenPlugin, uptimeSeconds: number, root: string): PluginProcess {
  const args = parseCniArgs(cni.args);
  const namespace = args.get("K8S_POD_NAMESPACE");
  const name = args.get("K8S_POD_NAME");
  const uid = args.get("K8S_POD_UID");
  const pod = namespace && name ? { namespace, name, uid: uid ? podUid(uid) : undefined } : undefined;
  return {
    ...refOf(stat, uptimeSeconds),
    origin,
    command: printable(argv.join(" ").slice(0, 256) || stat.comm),
    cniCommand: cni.command,
    sandboxId: sandboxId(cni.containerId),
    netns: cni.netns,
    pod,
    holdsResultPipe: procLink(hostPath(root, `/proc/${stat.pid}/fd/1`))?.startsWith("pipe:") === true || undefined,
  };
}

function refOf(stat: ProcessStat, uptimeSeconds: number): ProcessRef {
  const { pid, startedSecondsAfterBoot } = stat;
  return { pid, startedSecondsAfterBoot, ageSeconds: Math.max(0, uptimeSeconds - startedSecondsAfterBoot) };
}

/**
 * k3s and microk8s embed the kubelet; rke2 and k0s start the ordinary one. A kubelet that is not proven to be the
 * node's own is a node nested in a pod, or forged to make unghost wait.
 */
function findKubelet(traces: readonly ProcessTraces[], prover: ProcessProver): ProcessId | undefined {
  const isProven = ({ stat, argv }: ProcessTraces) =>
    isKubeletName(stat.comm, argv) && isRootsService(prover.proveService(stat.pid));
  const stat = traces.find(isProven)?.stat;
  return stat && { pid: stat.pid, startedSecondsAfterBoot: stat.startedSecondsAfterBoot };
}

function append<Key>(lists: Map<Key, number[]>, key: Key, value: number): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
