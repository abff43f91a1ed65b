import { valueOr } from "../host/source.ts";
import { livenessOfStored } from "../liveness/stored.ts";
import { parseSandboxName } from "../snapshot/ids.ts";
import type { OfflineFacts } from "../snapshot/observe-offline.ts";
import type { CniFacts, SandboxMetadata } from "../snapshot/types.ts";

/** A stored sandbox that the next start of the runtime brings back NotReady, with its name taken. */
export interface ComingBack {
  readonly id: string;
  readonly name: string;
  readonly podName: string;
  /** Its address or its cached network result is still there: it was never taken down. */
  readonly holdsNetwork: boolean;
}

/**
 * Stored sandboxes of which nothing lives, but for those that were taken down in order: these had a network, and nothing
 * of it is left. Empty where processes could not be read: nothing is dead without proof.
 */
export function comingBack({ metadata, processes, cni }: OfflineFacts): readonly ComingBack[] {
  if (metadata.status !== "read" || processes.status !== "read") return [];
  const holders = networkHolders(cni);
  const found: ComingBack[] = [];
  for (const [id, sandbox] of storedSandboxes(metadata.value)) {
    const holdsNetwork = holders.has(id);
    const wasTakenDown = sandbox.hasCniResult && !holdsNetwork;
    if (wasTakenDown || livenessOfStored(id, metadata.value, processes).state !== "dead") continue;
    found.push({ id, name: sandbox.name, podName: podNameIn(sandbox.name), holdsNetwork });
  }
  return found;
}

/** By id, each once: a 2.x keeps most of them in both of its stores. A record without metadata is not read back. */
export function storedSandboxes(stored: {
  readonly records: readonly { readonly id: string; readonly sandbox?: SandboxMetadata }[];
  readonly sandboxes: readonly { readonly id: string; readonly sandbox?: SandboxMetadata }[];
}): ReadonlyMap<string, SandboxMetadata> {
  const byId = new Map<string, SandboxMetadata>();
  for (const { id, sandbox } of [...stored.sandboxes, ...stored.records]) {
    if (sandbox !== undefined) byId.set(id, sandbox);
  }
  return byId;
}

function networkHolders({ results, hostLocal }: Pick<CniFacts, "results" | "hostLocal">): ReadonlySet<string> {
  const leases = valueOr(hostLocal, []).flatMap((network) => network.leases);
  return new Set([
    ...valueOr(results, []).map(({ sandboxId }) => sandboxId),
    ...leases.flatMap(({ owner }) => (owner === undefined ? [] : [owner.id])),
  ]);
}

function podNameIn(name: string): string {
  const pod = parseSandboxName(name);
  return pod === undefined ? name : `${pod.namespace}/${pod.name}`;
}
