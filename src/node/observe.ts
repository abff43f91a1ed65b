import { placesAt } from "../host/distributions.ts";
import { hungMeanwhile, refuseHungMounts } from "../host/hung-mounts.ts";
import { absent, failed, read, type Source, valueOr } from "../host/source.ts";
import type { ClusterMirror } from "../kube/mirror.ts";
import { type ContainerdClient, openContainerd } from "../runtime/containerd.ts";
import { type CriClient, openCri } from "../runtime/cri.ts";
import { RuntimeError } from "../runtime/errors.ts";
import { BYTES_PER_SCAN, type CallOptions, openChannel } from "../runtime/grpc.ts";
import { listAllSandboxes } from "../runtime/lists.ts";
import { withoutGuard } from "./cni-conf.ts";
import { needsCniDaemons, readCniDaemons } from "./cni-daemons.ts";
import { readCni } from "./cni-facts.ts";
import { readContainerd, unansweredShims } from "./containerd-facts.ts";
import { fetchRuntimeInfo, hasNotReady, type RuntimeInfo, readCri } from "./cri-facts.ts";
import { readCsi } from "./csi.ts";
import { needsInotifyUse, readInotifyUse } from "./inotify.ts";
import { readKernelLog } from "./kernel-log.ts";
import { runningKubeletRoot } from "./kubelet-process.ts";
import { readKubernetes } from "./kubernetes.ts";
import { readLogs } from "./logs.ts";
import { comparePidNamespace } from "./machine.ts";
import { readMultusDaemon } from "./multus-daemon.ts";
import { DEFAULT_NETNS_DIR, readNetns } from "./netns.ts";
import { readPodVolumes } from "./pod-volumes.ts";
import { readBoot, readProcessTable } from "./process-table.ts";
import { readProcesses } from "./processes.ts";
import { rescan } from "./rescan.ts";
import { findNodeRuntime, findRuntimeProcess } from "./runtime-process.ts";
import { readStaticManifests } from "./static-pods.ts";
import type { ContainerdFacts, CriFacts, ProcessId, Runtime } from "./types/runtime.ts";
import type { CsiSocket, KernelFacts, Snapshot } from "./types/snapshot.ts";

export interface ObserveOptions {
  /**
   * Which log lines are kept: the catalogue of failure classes decides. Called once the runtime has its requests, so that
   * code is loaded while it prepares its answers.
   */
  readonly loadRelevance: () => Promise<(line: string) => boolean>;
  readonly node: string;
  readonly runtimeEndpoint: string | undefined;
  readonly cniCacheDir: string;
  readonly multusDir: string | undefined;
  readonly hostRoot: string;
  readonly kubeconfig: string | undefined;
  readonly noKube: boolean;
  readonly timeoutMs: number;
  /** The caller does not use the kernel log, and a full ring buffer takes 4 ms to read. */
  readonly withoutKernelLog?: boolean;
  /** The agent's copy of the cluster's state, kept current by watches. */
  readonly mirror?: ClusterMirror;
}

type Environment = Readonly<Record<string, string | undefined>>;

function callWithin(timeoutMs: number): CallOptions & { readonly signal: AbortSignal } {
  return { timeoutMs, signal: AbortSignal.timeout(timeoutMs) };
}

/** A source that is read after others were late still has this long. */
const LEAST_MS = 500;

function leftOf(timeoutMs: number, startedAt: number): number {
  return Math.max(timeoutMs - Math.round(performance.now() - startedAt), Math.min(timeoutMs, LEAST_MS));
}

/** Reads the node once, all sources concurrently. Nothing here throws: an unreadable source is a fact. */
export async function observe(options: ObserveOptions, env: Environment): Promise<Snapshot> {
  const { hostRoot: root, timeoutMs } = options;
  const dirs = [options.cniCacheDir, ...(options.multusDir === undefined ? [] : [options.multusDir])];
  const startedAt = performance.now();
  const hung = await refuseHungMounts(root, dirs, AbortSignal.timeout(timeoutMs));
  const snapshot = await observeRuntime({ ...options, timeoutMs: leftOf(timeoutMs, startedAt) }, env);
  const hungMounts = [...hung, ...hungMeanwhile()];
  return hungMounts.length === 0 ? snapshot : { ...snapshot, hungMounts };
}

async function observeRuntime(options: ObserveOptions, env: Environment): Promise<Snapshot> {
  const { hostRoot: root, timeoutMs } = options;
  const found = await findNodeRuntime({ endpoint: options.runtimeEndpoint, env, hostRoot: root, timeoutMs });
  if (found.kind !== "found") {
    const nothing = {
      containerd: absent<ContainerdFacts>(found.message),
      cri: failed<CriFacts>(found.message, found.next),
    };
    const reading = { facts: Promise.resolve(nothing), hasDeadSandboxes: Promise.resolve(false) };
    return await observeWith(options, env, "", Promise.resolve(undefined), reading);
  }
  const channel = openChannel(found.path, { maxBytes: BYTES_PER_SCAN });
  const cri = openCri(found.path, channel);
  const containerd = openContainerd(found.path, channel);
  const startedAt = performance.now();
  try {
    const call = callWithin(timeoutMs);
    const runtimeInfo = fetchRuntimeInfo(cri, call);
    const runtime = readRuntime(cri, containerd, runtimeInfo, call);
    // The runtime prepares its answers while everything else is read, but only once it has received the requests.
    // runtimeInfo has a timeout, and this must not exceed it.
    await Promise.race([channel.sent(), runtimeInfo]);
    const snapshot = await observeWith(options, env, found.path, runtimeInfo, runtime);
    const late = callWithin(leftOf(timeoutMs, startedAt));
    const settled = await rescan(snapshot, root, () => observeContainerd(containerd, late));
    return await withPointedAt(await withCniDaemons(settled, root, late.signal), root);
  } finally {
    channel.close();
  }
}

/** Errors that a file of the node confirms: `pointed-at.ts` reads it, and is loaded for them alone. */
const POINTING =
  /mkdir \S{0,3}\/sys\/fs\/cgroup|ip address different from|for an interface other than|kubeconfig|x509: |(?:remove|delete) cgroup/i;

async function withPointedAt(snapshot: Snapshot, root: string): Promise<Snapshot> {
  const lines = (valueOr(snapshot.logs, undefined)?.lines ?? []).filter(({ text }) => POINTING.test(text));
  if (lines.length === 0) return snapshot;
  const { readPointedAt } = await import("./pointed-at.ts");
  const { conf, bin } = cniDirsOf(snapshot);
  return { ...snapshot, pointedAt: readPointedAt({ root, confDir: conf, binDirs: withoutGuard(root, bin), lines }) };
}

function cniDirsOf(snapshot: Snapshot): { readonly conf: string; readonly bin: readonly string[] } {
  const places = placesAt(snapshot.runtime.endpoint.replace(/^unix:\/\//, ""));
  const reported = valueOr(snapshot.cri, undefined)?.cniDirs;
  const used = valueOr(snapshot.cni.conf, undefined);
  return {
    conf: reported?.conf ?? used?.dir ?? places.cniConfDir,
    bin: reported?.bin ?? used?.binDirs ?? places.cniBinDirs,
  };
}

/** Read only if something waits or fails: a healthy node does not need the scan of every process's sockets. */
async function withCniDaemons(snapshot: Snapshot, root: string, signal: AbortSignal): Promise<Snapshot> {
  if (!needsCniDaemons(snapshot)) return snapshot;
  const confDir = cniDirsOf(snapshot).conf;
  const table = await readProcessTable({ root, signal });
  return { ...snapshot, cniDaemons: await readCniDaemons({ root, confDir, table, signal }) };
}

interface RuntimeFacts {
  readonly containerd: Source<ContainerdFacts>;
  readonly cri: Source<CriFacts>;
}

interface RuntimeReading {
  readonly facts: Promise<RuntimeFacts>;
  /**
   * Known once the sandboxes are listed, while the runtime still asks the shims: what is read only on a node with dead
   * sandboxes is read meanwhile.
   */
  readonly hasDeadSandboxes: Promise<boolean>;
}

async function observeWith(
  options: ObserveOptions,
  env: Environment,
  path: string,
  runtimeInfo: Promise<RuntimeInfo | undefined>,
  { facts: runtimeFacts, hasDeadSandboxes }: RuntimeReading,
): Promise<Snapshot> {
  const { hostRoot: root } = options;
  const observedAt = new Date();
  // At the same moment: a delay between them would shift the boot time.
  const boot = readBoot({ root, now: observedAt });
  const signal = AbortSignal.timeout(options.timeoutMs);
  const places = placesAt(path);
  const table = readProcessTable({ root, signal });

  const network = runtimeInfo.then(async (info) => {
    const defaults = { conf: places.cniConfDir, bin: places.cniBinDirs };
    const isCrio = info === undefined ? places.names.includes("cri-o") : info.name === "cri-o";
    // Loaded on demand: other runtimes need no TOML.
    const ofCrio =
      isCrio && info?.cniDirs === undefined ? (await import("./crio-config.ts")).readCrioCniDirs(root) : {};
    const reported = info?.cniDirs ?? { ...defaults, ...ofCrio };
    return {
      cniDirs: { ...reported, bin: withoutGuard(root, reported.bin) },
      isContainerd: info?.name.startsWith("containerd") ?? true,
    };
  });

  async function kernelFacts(): Promise<Source<KernelFacts>> {
    if (options.withoutKernelLog === true) return absent("not requested");
    // A healthy node does not need the milliseconds for reading its log.
    if (!(await hasDeadSandboxes) && !hasRestarts((await runtimeFacts).cri) && !isSignalRefused(await readingLogs))
      return absent("nothing is dead, and nothing restarts");
    return await readKernelLog({ root, signal });
  }

  // Sources without the runtime come first: they are read while the runtime prepares its answers.
  const runtimeProcess = table.then((processTable) =>
    path === ""
      ? absent<ProcessId>("no runtime")
      : findRuntimeProcess({ root, socketPath: path, table: processTable, signal }),
  );
  const kubeletRoot = runningKubeletRoot({ root, runtimePath: path, signal, table });
  const cniFacts = readCni({ ...options, root, cacheDir: options.cniCacheDir, network, table, signal });
  const readingLogs = options
    .loadRelevance()
    .then((isRelevantLine) => readLogs({ root, sources: places, signal, isRelevantLine }));
  const inotifyUse = Promise.all([hasDeadSandboxes, readingLogs, table]).then(([isUnhealthy, lines, processTable]) =>
    path !== "" && needsInotifyUse(isUnhealthy, lines)
      ? readInotifyUse({ root, table: processTable, signal })
      : undefined,
  );
  const [kubernetes, csi, netns, processes, kernel, logs, cni, runtime, facts, multusDaemon, inotify] =
    await Promise.all([
      readKubernetes({ ...options, root, kubeletRoot, env, hasDeadSandboxes }),
      Promise.all([hasDeadSandboxes, kubeletRoot]).then(([isUnhealthy, where]) =>
        isUnhealthy ? readCsi({ root, kubeletRoot: where, signal }) : absent<readonly CsiSocket[]>("nothing is dead"),
      ),
      readNetns({ root, dir: DEFAULT_NETNS_DIR, signal }),
      table.then((processTable) => {
        const cniBinDirs = network.then(({ cniDirs }) => cniDirs.bin);
        const isContainerd = network.then((info) => info.isContainerd);
        return readProcesses({
          root,
          table: processTable,
          signal,
          ...(path === "" ? {} : { runtime: { socketPath: path, cniBinDirs, isContainerd, process: runtimeProcess } }),
        });
      }),
      kernelFacts(),
      readingLogs,
      cniFacts,
      Promise.all([runtimeInfo, runtimeProcess]).then((known) => describeRuntime(path, ...known)),
      runtimeFacts,
      Promise.all([cniFacts, table]).then(([{ conf }, processTable]) =>
        readMultusDaemon({ root, multus: valueOr(conf, undefined)?.multus, table: processTable }),
      ),
      inotifyUse,
    ]);
  const staticManifests = await readStaticManifests({ root, signal, table });
  const podVolumes = readPodVolumes({ kubernetes }, { root, kubeletRoot: await kubeletRoot });
  return {
    node: options.node,
    observedAt,
    boot,
    runtime,
    ...facts,
    cni,
    netns,
    processes,
    pidNamespace: comparePidNamespace(root),
    logs,
    kubernetes,
    multusDaemon,
    csi,
    staticManifests,
    podVolumes,
    kernel,
    inotify,
  };
}

function isSignalRefused(logs: Snapshot["logs"]): boolean {
  return (valueOr(logs, undefined)?.lines ?? []).some(({ text }) => text.includes("unable to signal init"));
}

function hasRestarts(cri: Source<CriFacts>): boolean {
  return valueOr(cri, undefined)?.containers.some(({ attempt }) => attempt > 1) === true;
}

function readRuntime(
  cri: CriClient,
  client: ContainerdClient,
  runtimeInfo: Promise<RuntimeInfo | undefined>,
  call: CallOptions,
): RuntimeReading {
  const containerd = observeContainerd(client, call);
  const hints = async () =>
    (valueOr(await containerd, undefined)?.records ?? []).flatMap(({ labels }) => {
      const namespace = labels["io.kubernetes.pod.namespace"];
      const uid = labels["io.kubernetes.pod.uid"];
      return namespace !== undefined && uid !== undefined ? [{ namespace, uid }] : [];
    });
  const listing = listAllSandboxes(cri, hints, call);
  const reading = Promise.all([containerd, orFailed(readCri(cri, runtimeInfo, listing, call))]);
  const facts = reading.then(([containerdSource, criSource]): RuntimeFacts => {
    // One broken socket is one problem, and CRI's is the one to report.
    const isOneProblem = criSource.status === "failed" && containerdSource.status === "failed";
    return { cri: criSource, containerd: isOneProblem ? absent(criSource.error.message) : containerdSource };
  });
  return { facts, hasDeadSandboxes: hasNotReady(listing) };
}

function observeContainerd(client: ContainerdClient, call: CallOptions): Promise<Source<ContainerdFacts>> {
  return orFailed(readContainerd(client, call).then((facts) => read(facts, unansweredShims(facts))));
}

/** An unreadable source is a fact, not an error; one that the runtime does not have is normal. */
async function orFailed<T>(reading: Promise<Source<T>>): Promise<Source<T>> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    return error.kind === "unsupported" ? absent(error.message) : failed(error.message, error.next, error.kind);
  }
}

function describeRuntime(path: string, runtimeInfo: RuntimeInfo | undefined, process: Source<ProcessId>): Runtime {
  const endpoint = path === "" ? "" : `unix://${path}`;
  if (runtimeInfo === undefined) return { endpoint, reachable: false, name: "", version: "" };
  const { name, version } = runtimeInfo;
  return { endpoint, reachable: true, name, version, process: valueOr(process, undefined) };
}
