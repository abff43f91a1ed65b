import { type ContainerdClient, openContainerd } from "../runtime/containerd.ts";
import { type CriClient, openCri } from "../runtime/cri.ts";
import { distributionOf } from "../runtime/distributions.ts";
import { RuntimeError } from "../runtime/errors.ts";
import { findRuntime } from "../runtime/find.ts";
import type { StatusResponse, VersionResponse } from "../runtime/gen/runtime/v1/cri.ts";
import { readBoot } from "./boot.ts";
import { readCni } from "./cni-facts.ts";
import { readContainerd } from "./containerd-facts.ts";
import { parseCniDirs, readCri } from "./cri-facts.ts";
import { readKubernetes } from "./kubernetes.ts";
import { readLogs } from "./logs.ts";
import { DEFAULT_NETNS_DIR, readNetns } from "./netns.ts";
import { type ProcessTable, readProcessTable } from "./process-table.ts";
import { readProcesses } from "./processes.ts";
import { findRuntimeProcess } from "./runtime-process.ts";
import { absent, failed, type Source, valueOr } from "./source.ts";
import type { ContainerdFacts, CriFacts, Runtime, Snapshot } from "./types.ts";

export interface ObserveOptions {
  readonly node: string;
  readonly runtimeEndpoint: string | undefined;
  readonly cniCacheDir: string;
  readonly multusDir: string | undefined;
  readonly hostRoot: string;
  readonly noKube: boolean;
  readonly timeoutMs: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the node once. Files come before the runtime's lists: whatever a file says of a sandbox in the making is then
 * older than the record that containerd writes before it calls any plugin, so "file, but no record" means left behind.
 */
export async function observe(options: ObserveOptions, env: Environment): Promise<Snapshot> {
  const { hostRoot: root, timeoutMs } = options;
  const observedAt = new Date();
  const deadline = AbortSignal.timeout(timeoutMs);
  const call = { timeoutMs, signal: deadline };
  const boot = readBoot({ root, now: observedAt });
  const found = await findRuntime({ endpoint: options.runtimeEndpoint, env, hostRoot: root, timeoutMs });
  const distribution = distributionOf(found.kind === "found" ? found.path : "");
  const clients = found.kind === "found" ? openClients(found.path) : undefined;
  try {
    const greeting = clients === undefined ? undefined : await greet(clients.cri, timeoutMs);
    const status = greeting?.ok ? greeting.status : undefined;
    const cniDirs = (status && parseCniDirs(status.info)) ?? {
      conf: distribution.cniConfDir,
      bin: distribution.cniBinDirs,
    };
    const isContainerd = greeting?.ok === true && greeting.version.runtimeName.startsWith("containerd");
    const table = await readProcessTable({ root, signal: deadline });
    const [cni, netns, processes, logs] = await Promise.all([
      readCni({
        root,
        cacheDir: options.cniCacheDir,
        multusDir: options.multusDir,
        cniDirs,
        isContainerd,
        signal: deadline,
      }),
      readNetns({ root, dir: DEFAULT_NETNS_DIR, signal: deadline }),
      readProcesses({ root, table, signal: deadline }),
      readLogs({ root, distribution, signal: deadline }),
    ]);
    const [containerd, cri] = await readRuntime(clients, greeting, isContainerd, call);
    return {
      node: options.node,
      observedAt,
      boot,
      runtime: await describeRuntime(root, found.kind === "found" ? found.path : "", greeting, table),
      cri: found.kind === "found" ? cri : failed(found.message, found.next),
      containerd,
      cni,
      netns,
      processes,
      logs,
      kubernetes: readKubernetes({ root, noKube: options.noKube, kubeletRoot: distribution.kubeletRoot }),
    };
  } finally {
    clients?.cri.close();
    clients?.containerd.close();
  }
}

interface Clients {
  readonly cri: CriClient;
  readonly containerd: ContainerdClient;
}

function openClients(path: string): Clients {
  return { cri: openCri(path), containerd: openContainerd(path) };
}

type Greeting =
  | { readonly ok: true; readonly version: VersionResponse; readonly status: StatusResponse }
  | { readonly ok: false; readonly error: RuntimeError };

async function greet(cri: CriClient, timeoutMs: number): Promise<Greeting> {
  try {
    const [version, status] = await Promise.all([cri.version({ timeoutMs }), cri.status({ timeoutMs })]);
    return { ok: true, version, status };
  } catch (error) {
    if (error instanceof RuntimeError) return { ok: false, error };
    throw error;
  }
}

async function readRuntime(
  clients: Clients | undefined,
  greeting: Greeting | undefined,
  isContainerd: boolean,
  call: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<[Source<ContainerdFacts>, Source<CriFacts>]> {
  if (clients === undefined || greeting === undefined)
    return [absent("no runtime was found"), absent("no runtime was found")];
  if (!greeting.ok) return [absent("the runtime does not answer"), failed(greeting.error.message, greeting.error.next)];
  const containerd = isContainerd
    ? asSource(readContainerd(clients.containerd, call))
    : Promise.resolve(absent<ContainerdFacts>(`${greeting.version.runtimeName} is not containerd`));
  const hints = async () => {
    const facts = valueOr(await containerd, undefined);
    return (facts?.records ?? []).flatMap(({ labels }) => {
      const namespace = labels["io.kubernetes.pod.namespace"];
      const uid = labels["io.kubernetes.pod.uid"];
      return namespace !== undefined && uid !== undefined ? [{ namespace, uid }] : [];
    });
  };
  return await Promise.all([containerd, settled(readCri(clients.cri, greeting.status, hints, call))]);
}

async function asSource<T>(reading: Promise<T>): Promise<Source<T>> {
  return await settled(reading.then((value) => ({ status: "read", value, oddities: [] }) as const));
}

/** A source that cannot be read is a fact, not an end. */
async function settled<T>(reading: Promise<Source<T>>): Promise<Source<T>> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof RuntimeError) return failed(error.message, error.next);
    throw error;
  }
}

async function describeRuntime(
  root: string,
  path: string,
  greeting: Greeting | undefined,
  table: Source<ProcessTable>,
): Promise<Runtime> {
  const endpoint = path === "" ? "" : `unix://${path}`;
  if (!greeting?.ok) return { endpoint, reachable: false, name: "", version: "" };
  const process = valueOr(await findRuntimeProcess({ root, socketPath: path, table }), undefined);
  return {
    endpoint,
    reachable: true,
    name: greeting.version.runtimeName,
    version: greeting.version.runtimeVersion,
    ...(process === undefined ? {} : { process }),
  };
}
