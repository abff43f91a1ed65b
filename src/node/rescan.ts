import { basename, dirname } from "node:path";
import { existsSync } from "../host/guarded-fs.ts";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { entriesIn } from "../host/safe-fs.ts";
import { type Source, valueOr } from "../host/source.ts";
import type { ContainerdFacts } from "./types/runtime.ts";
import type { Snapshot } from "./types/snapshot.ts";

/**
 * All sources are read at the same time, so a sandbox that was created or removed meanwhile may be in one and not in
 * another. If a file or a shim has an id that the runtime does not list, the runtime is read again and the file or shim
 * is checked again: containerd writes a sandbox's record before it calls any plugin or starts a shim, so a file that
 * existed before the second read, and still exists, without a record after it, is a leak. Files of NotReady sandboxes
 * are checked again as well, because they may have been stopped just now.
 */
export async function rescan(
  snapshot: Snapshot,
  root: string,
  readContainerd: () => Promise<Source<ContainerdFacts>>,
): Promise<Snapshot> {
  const known = knownIds(snapshot);
  const { results, multus, flannel, hostLocal } = snapshot.cni;
  const ids = [
    ...valueOr(results, []).map((file) => file.sandboxId),
    ...(valueOr(multus, undefined)?.files ?? []).map((file) => file.sandboxId),
    ...valueOr(flannel, []).map((file) => file.sandboxId),
    ...valueOr(hostLocal, []).flatMap(({ leases }) => leases.map((lease) => lease.owner?.id ?? "")),
    ...(valueOr(snapshot.processes, undefined)?.shims ?? []).map(({ id }) => id),
  ];
  const notReady = new Set<string>(
    (valueOr(snapshot.cri, undefined)?.sandboxes ?? []).flatMap(({ id, state }) => (state === "notReady" ? [id] : [])),
  );
  const isUnknown = ids.some((id) => id !== "" && !known.has(id));
  if (!isUnknown && !ids.some((id) => notReady.has(id))) return snapshot;
  const containerd = isUnknown && snapshot.containerd.status === "read" ? await readContainerd() : snapshot.containerd;
  const isThere = presence(root);
  return {
    ...snapshot,
    containerd,
    processes: mapped(snapshot.processes, (facts) => ({
      ...facts,
      shims: facts.shims.filter(({ pid }) => existsSync(hostPath(root, `/proc/${pid}`))),
    })),
    cni: {
      ...snapshot.cni,
      results: mapped(results, (files) => files.filter(isThere)),
      multus: mapped(multus, (cache) => ({ ...cache, files: cache.files.filter(isThere) })),
      flannel: mapped(flannel, (files) => files.filter(isThere)),
      hostLocal: mapped(hostLocal, (networks) =>
        networks.map((network) => ({ ...network, leases: network.leases.filter(isThere) })),
      ),
    },
  };
}

/** Whether a file still exists, by the names in its directory: one listing covers thousands. */
function presence(root: string): (file: { readonly path: string }) => boolean {
  const namesIn = new Map<string, ReadonlySet<string>>();
  return ({ path }) => {
    const dir = dirname(path);
    const names = namesIn.get(dir) ?? new Set(entriesIn(resolveOnHost(root, dir, "follow")).map(({ name }) => name));
    namesIn.set(dir, names);
    return names.has(basename(path));
  };
}

function knownIds({ cri, containerd }: Snapshot): ReadonlySet<string> {
  const facts = valueOr(containerd, undefined);
  return new Set<string>([
    ...(valueOr(cri, undefined)?.sandboxes ?? []).map(({ id }) => id),
    ...(facts?.records ?? []).map(({ id }) => id),
    ...(facts?.sandboxes ?? []).map(({ id }) => id),
  ]);
}

function mapped<T>(source: Source<T>, change: (value: T) => T): Source<T> {
  return source.status === "read" ? { ...source, value: change(source.value) } : source;
}
