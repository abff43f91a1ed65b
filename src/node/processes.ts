import { dirname } from "node:path";
import { eachPaced } from "../host/concurrency.ts";
import { hostPath } from "../host/paths.ts";
import { type CniEnviron, isStopped, type ProcessStat, parseCniArgs, procLink } from "../host/proc.ts";
import { type MemoryRequest, prepareToReadMemory, readMemories } from "../host/process-memory.ts";
import { failed, type Oddity, read, type Source, valueOr } from "../host/source.ts";
import { printable } from "../host/text.ts";
import { containerIdsOf, isOtherEngines } from "./cgroup-path.ts";
import { isKubeletName } from "./kubelet-process.ts";
import { type PluginOrigins, pluginOrigins } from "./plugin-origin.ts";
import { type ProcessTable } from "./process-table.ts";
import { canonicalOnHost, findRuntimeProcess, isRuntimeName, nameOnHost, socketComparer } from "./runtime-process.ts";
import {
  isRootsService,
  isShim,
  type ProcessProver,
  type ProcessTraces,
  processProver,
  readTraces,
  type ShimArguments,
  shimAtWork,
  withMemory,
} from "./trusted-process.ts";
import { fullIdsIn, isFullId, podUid, sandboxId } from "./types/ids.ts";
import type { PluginOrigin, PluginProcess, ProcessFacts, ProcessId, ProcessRef, ShimProcess } from "./types/runtime.ts";

/** The scanned runtime: other runtimes on the same machine are ignored. */
export interface OurRuntime {
  /** As this process opens it. */
  readonly socketPath: string;
  /** As paths of the node; the runtime reports them, which may take a moment. */
  readonly cniBinDirs: readonly string[] | Promise<readonly string[]>;
  /** Shims with an address belong to containerd, those without (conmon) to another runtime; missing if unknown. */
  readonly isContainerd?: boolean | Promise<boolean>;
  /** The process behind the socket, if it is searched for anyway. */
  readonly process?: Promise<Source<ProcessId>>;
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

  if (processes.some(({ comm }) => isKubeletName(comm, []))) prepareToReadMemory();
  const found: ProcessTraces[] = [];
  const finished = await eachPaced(processes, signal, (stat) => {
    const traces = readTraces(proc, stat);
    if (traces !== undefined) found.push(traces);
  });
  if (!finished) return failed(`the ${processes.length} processes in ${proc} were not all read in time`);
  const prover = processProver(query.root);
  const isHidden = arePluginsHidden(found);
  const origins = isHidden ? undefined : await originsOf(found, query, prover);
  const traces = isHidden ? found : await withMemories(found, query, prover, origins);

  if (arePluginsHidden(traces)) {
    const hidden = traces.filter((trace) => trace.hidden !== undefined);
    return failed(
      `${hidden.length} of ${traces.length} processes: permission denied; a hung network plugin would not be found`,
      "run unghost as root, or give it CAP_SYS_PTRACE and the capabilities of the runtime",
      PERMISSION_DENIED,
    );
  }
  return read(
    await factsOf(traces, query, table.value, prover, origins),
    traces.flatMap((trace) => oddityOf(proc, trace) ?? []),
  );
}

/**
 * Adds arguments and environment of root's processes outside of containers where they can matter: shims, plugins and
 * k3s. What is known without their memory comes first, because any user can lock the memory of a process, and start
 * thousands.
 */
async function withMemories(
  found: readonly ProcessTraces[],
  { root, runtime, signal }: ProcessesQuery,
  prover: ProcessProver,
  origins: PluginOrigins | undefined,
): Promise<readonly ProcessTraces[]> {
  const proc = hostPath(root, "/proc");
  const stateDir = runtime && dirname(canonicalOnHost(root, runtime.socketPath));
  const mayBePlugin = origins?.mayBePlugin(await soon(runtime?.cniBinDirs));
  const shims = new Map<number, ShimArguments>();
  const wanted: { readonly at: number; readonly request: MemoryRequest }[] = [];
  const finished = await eachPaced(found.entries(), signal, ([at, { stat }]) => {
    const dir = `${proc}/${stat.pid}`;
    const environ = !isShim(stat) && mayBePlugin?.(stat) === true;
    const isNamed = (isShim(stat) || stat.comm === "k3s") && prover.proveNodesRoot(stat.pid).kind === "trusted";
    if (!environ && !isNamed) return;
    const shim = isShim(stat) ? shimAtWork(procLink(`${dir}/cwd`) ?? "") : undefined;
    if (shim !== undefined && (stateDir === undefined || canonicalOnHost(root, shim.state) === stateDir))
      shims.set(at, { ...shim, address: runtime && nameOnHost(root, runtime.socketPath) });
    else wanted.push({ at, request: { dir, environ, cmdline: isNamed ? "always" : "plugin" } });
  });
  const requests = wanted.map(({ request }) => request);
  const memories = await readMemories(requests, finished ? signal : AbortSignal.abort());
  const byIndex = new Map(wanted.map(({ at }, index) => [at, memories[index]]));
  return found.flatMap((traces, at) => {
    const memory = byIndex.get(at);
    if (memory === undefined) return [{ ...traces, shim: shims.get(at) }];
    return memory.environ.kind === "gone" || memory.cmdline.kind === "gone" ? [] : [withMemory(traces, memory)];
  });
}

/** A runtime that hangs reports nothing until the timeout of the scan, which is too late to read anything. */
const SOON_MS = 250;

async function soon<T>(value: T | Promise<T>): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), SOON_MS);
  const first = await Promise.race([value, late.promise]);
  clearTimeout(timer);
  return first;
}

/** Undefined without a runtime: then no process is known to be its plugin. */
async function originsOf(
  found: readonly ProcessTraces[],
  { root, table, runtime, signal }: ProcessesQuery,
  prover: ProcessProver,
): Promise<PluginOrigins | undefined> {
  if (runtime === undefined) return undefined;
  const { socketPath, process = findRuntimeProcess({ root, socketPath, table, signal }) } = runtime;
  return pluginOrigins({
    root,
    processes: found.map(({ stat }) => stat),
    prover,
    runtimePid: valueOr(await process, undefined)?.pid,
    cgroups: new Map(found.map(({ stat, cgroup }) => [stat.pid, cgroup])),
  });
}

/** Plugins inherit from the runtime who may read them. If most processes are hidden, unghost does not run as root. */
function arePluginsHidden(all: readonly ProcessTraces[]): boolean {
  const denied = all.filter((trace) => trace.hidden === "denied");
  return denied.length * 2 > all.length || denied.some(({ stat }) => isRuntimeName(stat.comm));
}

function oddityOf(proc: string, { stat, hidden }: ProcessTraces): Oddity | undefined {
  if (hidden === undefined) return undefined;
  const name = `${printable(stat.comm)} (pid ${stat.pid})`;
  const path = `${proc}/${stat.pid}`;
  return hidden === "timeout"
    ? { path, reason: `${name} keeps its memory locked: its arguments and environment could not be read in time` }
    : { path, reason: `${name} cannot be read: permission denied`, code: PERMISSION_DENIED };
}

async function factsOf(
  traces: readonly ProcessTraces[],
  query: ProcessesQuery,
  { uptimeSeconds }: ProcessTable,
  prover: ProcessProver,
  origins: PluginOrigins | undefined,
): Promise<ProcessFacts> {
  const byContainer = new Map<string, number[]>();
  const othersIds = new Set<string>();
  const children = new Map<number, number[]>();
  const netnsInodes = new Set<bigint>();
  const netnsUnread: number[] = [];
  const proc = hostPath(query.root, "/proc");
  for (const { stat, cgroup, netns, hidden } of traces) {
    // A shim works in the directory of its container, which the kernel shows without the shim's memory.
    if (hidden === "timeout" && isShim(stat))
      for (const id of fullIdsIn(procLink(`${proc}/${stat.pid}/cwd`) ?? "")) append(byContainer, id, stat.pid);
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
  const plugins = await provenPlugins(traces, query.runtime, origins);
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

async function provenPlugins(
  traces: readonly ProcessTraces[],
  runtime: OurRuntime | undefined,
  origins: PluginOrigins | undefined,
): Promise<readonly ProvenPlugin[]> {
  const candidates = traces.filter(({ cni }) => cni !== undefined && isFullId(cni.containerId));
  if (candidates.length === 0 || runtime === undefined) return [];
  const cniBinDirs = await runtime.cniBinDirs;
  return candidates.flatMap(({ stat, cni, argv }) => {
    // Proven again after its environment was read: if the pid was reused, the new process has to pass the proof.
    const origin = origins?.originOf(stat, argv, cniBinDirs);
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
