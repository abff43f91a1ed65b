import { dirname, join } from "node:path";
import type { LeaseRef } from "../classes/step.ts";
import { RuntimeError } from "../runtime/errors.ts";
import { parseResultName } from "../snapshot/cni-results.ts";
import { readHostLocal } from "../snapshot/host-local.ts";
import { resolveOnHost } from "../snapshot/host-paths.ts";
import { failedListing, listDirectory } from "../snapshot/safe-fs.ts";
import { absent, failed, read, type Source } from "../snapshot/source.ts";
import type { NodeTools } from "./node-tools.ts";

export interface Attachment {
  readonly containerID: string;
  readonly ifname: string;
}

/** Every attachment to a network but those of one sandbox, or why they cannot all be known. */
export async function validAttachments(
  sandboxId: string,
  lease: LeaseRef,
  tools: NodeTools,
): Promise<Source<readonly Attachment[]>> {
  const leases = await readLeases(lease, tools);
  if (leases.status !== "read") return leases;
  const resultNames = readResultNames(tools);
  if (resultNames.status !== "read") return resultNames;
  const ids = await readIds(tools);
  if (ids.status !== "read") return ids;
  if (ids.value.includes(sandboxId)) return failed(`${sandboxId} is known to the runtime after all`);
  const traces = { ids: ids.value, resultNames: resultNames.value, leases: leases.value };
  return read(attachmentsIn(lease.network, sandboxId, traces));
}

export interface Traces {
  /** Ids that the runtime, its records or any process carries. */
  readonly ids: readonly string[];
  /** Names of cached results, of whatever network. */
  readonly resultNames: readonly string[];
  readonly leases: readonly { readonly id: string; readonly interfaceName: string }[];
}

/** Every attachment to the network that the traces tell of, but for those of the sandbox that is left behind. */
export function attachmentsIn(network: string, leftBehind: string, traces: Traces): readonly Attachment[] {
  const interfaces = new Map<string, Set<string>>();
  function note(id: string, interfaceName: string): void {
    interfaces.set(id, (interfaces.get(id) ?? new Set(["eth0"])).add(interfaceName));
  }
  for (const id of traces.ids) note(id, "eth0");
  for (const { id, interfaceName } of traces.leases) note(id, interfaceName);
  for (const name of traces.resultNames) {
    const result = parseResultName(name);
    if (result !== undefined) note(result.sandboxId, result.interfaceName);
    for (const { containerID, ifname } of readingsOf(name, network)) note(containerID, ifname);
  }
  interfaces.delete(leftBehind);
  return [...interfaces].flatMap(([containerID, names]) => [...names].map((ifname) => ({ containerID, ifname })));
}

/**
 * `<network>-<id>-<interface>` with dashes in ids (nerdctl's) and interfaces: every way to read it, for one attachment
 * too many frees nothing, and one too few frees an address in use.
 */
function readingsOf(resultName: string, network: string): readonly Attachment[] {
  if (!resultName.startsWith(`${network}-`)) return [];
  const parts = resultName.slice(network.length + 1).split("-");
  return parts.slice(1).map((_part, index) => ({
    containerID: parts.slice(0, index + 1).join("-"),
    ifname: parts.slice(index + 1).join("-"),
  }));
}

async function readLeases({ network, path }: LeaseRef, tools: NodeTools): Promise<Source<Traces["leases"]>> {
  const dir = dirname(path);
  const signal = AbortSignal.timeout(tools.waits.lookMs);
  const source = await readHostLocal({ root: tools.hostRoot, dir: dirname(dir), signal });
  if (source.status !== "read") return source;
  const odd = source.oddities.find((oddity) => oddity.path.startsWith(`${dir}/`));
  if (odd !== undefined) return failed(`${odd.path}: ${odd.reason}`);
  const leases = source.value.find((one) => one.network === network)?.leases;
  if (leases === undefined) return failed(`${dir} was not read`);
  const ownerless = leases.find(({ owner }) => owner === undefined);
  if (ownerless !== undefined) return failed(`${ownerless.path} names no owner`);
  return read(leases.flatMap(({ owner }) => owner ?? []));
}

function readResultNames({ hostRoot, cniCacheDirs }: NodeTools): Source<readonly string[]> {
  const names: string[] = [];
  for (const dir of cniCacheDirs.map((cacheDir) => join(cacheDir, "results"))) {
    const listing = listDirectory(resolveOnHost(hostRoot, dir, "keep"));
    if (listing.kind === "absent") continue;
    if (listing.kind === "refused") return failedListing(dir, listing);
    const [unreadable] = listing.undecodable;
    if (unreadable !== undefined) return failed(`${dir}/${unreadable}: its name is not valid UTF-8`);
    names.push(...listing.entries.map(({ name }) => name));
  }
  return read(names);
}

async function readIds({ cri, facts, waits }: NodeTools): Promise<Source<readonly string[]>> {
  facts.renew();
  try {
    const [listed, containerd, processes] = await Promise.all([
      cri.listPodSandbox(undefined, { timeoutMs: waits.lookMs }),
      facts.containerd(),
      facts.processes(),
    ]);
    // CRI-O calls GC itself, at its start.
    if (containerd === undefined) return absent("only containerd's records tell which sandboxes are in the making");
    if (processes.status !== "read") return processes;
    const { shims, byContainer, othersIds = [], plugins, kubelet } = processes.value;
    const [hidden] = processes.oddities;
    if (hidden !== undefined) return failed(`${hidden.path}: ${hidden.reason}`);
    if (kubelet !== undefined) return failed(`kubelet (pid ${kubelet.pid}) may have a pod attached at any moment`);
    const [busy] = plugins;
    if (busy !== undefined) return failed(`a network plugin is at work (${busy.cniCommand}, pid ${busy.pid})`);
    const known = [...listed, ...containerd.records, ...containerd.sandboxes, ...shims];
    return read([...known.map(({ id }) => id), ...byContainer.keys(), ...othersIds]);
  } catch (error) {
    if (error instanceof RuntimeError) return failed(error.message);
    throw error;
  }
}
