import { hostPath } from "./host-paths.ts";
import { podUid, sandboxId } from "./ids.ts";
import { isKubeletName } from "./kubelet-process.ts";
import { eachPaced } from "./pace.ts";
import { type CniEnviron, type ProcessStat, parseCniArgs } from "./proc-parse.ts";
import type { ProcessTable } from "./process-table.ts";
import { type ProcessTraces, readTraces } from "./process-traces.ts";
import { isRuntimeName } from "./runtime-process.ts";
import { printable } from "./safe-fs.ts";
import { failed, type Oddity, read, type Source } from "./source.ts";
import { type ProcessProver, processProver } from "./trusted-process.ts";
import type { PluginProcess, ProcessFacts, ProcessRef } from "./types.ts";

/** What the node's processes say about sandboxes. */
export async function readProcesses(query: {
  readonly root: string;
  readonly table: Source<ProcessTable>;
  readonly signal?: AbortSignal;
}): Promise<Source<ProcessFacts>> {
  const { table, signal } = query;
  if (table.status !== "read") return table;
  const proc = hostPath(query.root, "/proc");
  const { processes, uptimeSeconds } = table.value;

  const found: (ProcessTraces | undefined)[] = [];
  const sleepers: Promise<ProcessTraces | undefined>[] = [];
  const finished = await eachPaced(processes, signal, (stat) => {
    const traces = readTraces(proc, stat);
    if (traces instanceof Promise) sleepers.push(traces);
    else found.push(traces);
  });
  const traces = [...found, ...(await Promise.all(sleepers))].filter((trace) => trace !== undefined);
  if (!finished) return failed(`the ${processes.length} processes in ${proc} were not all looked into in time`);

  const hidden = traces.filter((trace) => trace.hidden !== undefined);
  if (isBlindToPlugins(hidden, traces)) {
    return failed(
      `${hidden.length} of ${traces.length} processes may not be looked into: a hung network plugin would not be seen`,
      "run unghost as root, or give it CAP_SYS_PTRACE and the capabilities of the runtime",
    );
  }
  return read(
    factsOf(traces, uptimeSeconds, processProver(query.root)),
    hidden.map((trace) => oddityOf(proc, trace)),
  );
}

/** Plugins inherit from the runtime what decides who may look into them. Most others hidden: this is not root. */
function isBlindToPlugins(hidden: readonly ProcessTraces[], all: readonly ProcessTraces[]): boolean {
  const denied = hidden.filter((trace) => trace.hidden === "denied");
  return denied.length * 2 > all.length || denied.some(({ stat }) => isRuntimeName(stat.comm));
}

function oddityOf(proc: string, { stat, hidden }: ProcessTraces): Oddity {
  const name = `${printable(stat.comm)} (pid ${stat.pid})`;
  const why =
    hidden === "timeout" ? "is in uninterruptible sleep and holds its memory locked" : "may not be looked into";
  return { path: `${proc}/${stat.pid}`, reason: `${name} ${why}` };
}

function factsOf(traces: readonly ProcessTraces[], uptimeSeconds: number, prover: ProcessProver): ProcessFacts {
  const byContainer = new Map<string, number[]>();
  const children = new Map<number, number[]>();
  const netnsInodes = new Set<bigint>();
  for (const { stat, containerIds, netns } of traces) {
    for (const id of containerIds) append(byContainer, id, stat.pid);
    append(children, stat.parentPid, stat.pid);
    if (netns !== undefined) netnsInodes.add(netns);
  }
  const kubelet = findKubelet(traces, prover);
  return {
    plugins: traces.flatMap(({ stat, cni, argv }) =>
      cni === undefined ? [] : [pluginOf(stat, cni, argv, uptimeSeconds)],
    ),
    shims: traces.flatMap(({ stat, shimId }) => {
      if (shimId === undefined) return [];
      const childPids = children.get(stat.pid) ?? [];
      return [{ ...refOf(stat, uptimeSeconds), parentPid: stat.parentPid, id: shimId, childPids }];
    }),
    byContainer,
    netnsInodes,
    ...(kubelet === undefined
      ? {}
      : { kubelet: { pid: kubelet.pid, startedSecondsAfterBoot: kubelet.startedSecondsAfterBoot } }),
  };
}

function pluginOf(stat: ProcessStat, cni: CniEnviron, argv: readonly string[], uptimeSeconds: number): PluginProcess {
  const args = parseCniArgs(cni.args);
  const namespace = args.get("K8S_POD_NAMESPACE");
  const name = args.get("K8S_POD_NAME");
  const uid = args.get("K8S_POD_UID");
  const pod = namespace && name ? { namespace, name, uid: uid ? podUid(uid) : undefined } : undefined;
  return {
    ...refOf(stat, uptimeSeconds),
    parentPid: stat.parentPid,
    command: printable(argv.join(" ").slice(0, 256) || stat.comm),
    cniCommand: cni.command,
    sandboxId: sandboxId(cni.containerId),
    interfaceName: cni.interfaceName,
    netns: cni.netns,
    ...(pod === undefined ? {} : { pod }),
  };
}

function refOf(stat: ProcessStat, uptimeSeconds: number): ProcessRef {
  const { pid, startedSecondsAfterBoot } = stat;
  return { pid, startedSecondsAfterBoot, ageSeconds: Math.max(0, uptimeSeconds - startedSecondsAfterBoot) };
}

/**
 * k3s and microk8s run the kubelet inside a process of their own; rke2 and k0s start the ordinary one. One that is not
 * proven to be the node's own is a node nested in a pod, or somebody who wants unghost to hold back.
 */
function findKubelet(traces: readonly ProcessTraces[], prover: ProcessProver): ProcessStat | undefined {
  const isProven = ({ stat, argv }: ProcessTraces) =>
    isKubeletName(stat.comm, argv) && prover.proveService(stat.pid).kind === "trusted";
  return traces.find(isProven)?.stat;
}

function append<Key>(lists: Map<Key, number[]>, key: Key, value: number): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
