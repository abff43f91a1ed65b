import { isIPv4 } from "node:net";
import type { FailureClass } from "../classes/failure-class.ts";
import { classById } from "../classes/index.ts";
import { crashLoops } from "../evidence/crash-loops.ts";
import type { NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import type { HostLocalNetwork, ResultFile, ScratchFile } from "../node/types/cni.ts";
import type { Planned } from "../plan/scan.ts";
import type { CacheFileCount, LeaseCount, NodeCounts } from "./state/state.ts";

/** Numbers that are not in the report, computed before the snapshot is dropped. */
export function countsOf({ snapshot, diagnosis }: Pick<Planned, "snapshot" | "diagnosis">): NodeCounts {
  const { view } = diagnosis;
  const { cni } = snapshot;
  const counted = (as: FailureClass["countedAs"]): number =>
    diagnosis.findings.filter((finding) => classById(finding.class)?.countedAs === as).length;
  return {
    cacheFiles: [
      ...fileCounts("result", valueOr(cni.results, []), view),
      ...fileCounts("multus", valueOr(cni.multus, undefined)?.files ?? [], view),
      ...fileCounts("flannel", valueOr(cni.flannel, []), view),
    ],
    leases: valueOr(cni.hostLocal, []).flatMap((network) => leaseCounts(network, valueOr(cni.results, []), view)),
    cniQueue: cni.guardQueue?.waiting ?? 0,
    leftoverContainers: counted("leftoverContainers"),
    volumeAttachmentsStuck: counted("volumeAttachmentsStuck"),
  };
}

function fileCounts(
  kind: CacheFileCount["kind"],
  files: readonly ScratchFile[],
  view: NodeView,
): readonly CacheFileCount[] {
  const stateOf = ({ health, sandboxId }: ScratchFile): CacheFileCount["state"] =>
    health === "ok" && isUnknown(sandboxId, view) ? "orphaned" : health;
  return [...Map.groupBy(files, stateOf)].map(([state, { length }]) => ({ kind, state, count: length }));
}

function leaseCounts(
  { network, leases }: HostLocalNetwork,
  results: readonly ResultFile[],
  view: NodeView,
): readonly LeaseCount[] {
  const leaked = leases.filter(({ owner }) => owner === undefined || isUnknown(owner.id, view)).length;
  const taken: readonly LeaseCount[] = [
    { network, state: "used", count: leases.length - leaked },
    { network, state: "leaked", count: leaked },
  ];
  const size = addressesFor(network, results);
  if (size === undefined) return taken;
  const taken4 = leases.filter(({ address }) => isIPv4(address)).length;
  return [...taken, { network, state: "free", count: Math.max(0, size - taken4) }];
}

/** Present only if the runtime answered. */
function isUnknown(id: string, view: NodeView): boolean {
  if (view.snapshot.cri.status !== "read") return false;
  const { sandbox, record, storeRecord } = view.about(id);
  return sandbox === undefined && record === undefined && storeRecord === undefined;
}

/** The network address, the gateway and the broadcast address are not assigned to pods. */
const NOT_FOR_PODS = 3;

/**
 * The number of IPv4 addresses for pods in a network, from the prefix length that its plugins wrote beside each
 * assigned address. A narrower configured range is not visible there. Undefined if no result has it.
 */
export function addressesFor(network: string, results: readonly ResultFile[]): number | undefined {
  for (const file of results) {
    if (file.network !== network) continue;
    for (const address of file.addresses ?? []) {
      const [, bits] = /^\d{1,3}(?:\.\d{1,3}){3}\/(\d{1,2})$/.exec(address) ?? [];
      if (bits !== undefined && Number(bits) <= 32) return Math.max(0, 2 ** (32 - Number(bits)) - NOT_FOR_PODS);
    }
  }
  return undefined;
}

/** What is new since the previous scan. */
export interface Growth {
  readonly crashRestarts: number;
  readonly kernelStalls: number;
}

interface Baseline {
  readonly boot: string;
  /** By pod and container: the restart count of the last scan. */
  readonly restarts: ReadonlyMap<string, number>;
  readonly stalls: number | undefined;
}

/**
 * Turns the counts since boot of each scan into increments. Restarts before the first scan are not counted, and a loop
 * that stops and starts again is not counted twice. After a boot everything is new.
 */
export class GrowthMeter {
  #before: Baseline | undefined;

  take({ snapshot, diagnosis }: Pick<Planned, "snapshot" | "diagnosis">): Growth {
    const before = this.#before;
    const boot = valueOr(snapshot.boot, undefined)?.id ?? before?.boot ?? "";
    const isSameBoot = before === undefined || before.boot === boot;
    const known = before !== undefined && isSameBoot ? before.restarts : new Map<string, number>();
    const loops = crashLoops(diagnosis.view).map(
      ({ pod, container, restartsSinceBoot }) => [`${pod.uid} ${container ?? ""}`, restartsSinceBoot] as const,
    );
    const crashRestarts = loops.reduce((sum, [key, now]) => sum + Math.max(0, now - (known.get(key) ?? 0)), 0);

    const stalls = snapshot.kernel?.status === "read" ? snapshot.kernel.value.stalls.count : undefined;
    const stallsBefore = isSameBoot ? before?.stalls : 0;
    const kernelStalls = stalls === undefined || stallsBefore === undefined ? 0 : Math.max(0, stalls - stallsBefore);

    // A scan that could not read the pods keeps the previous counts.
    const pods = snapshot.cri.status === "read" ? diagnosis.view.sandboxesOfPod : undefined;
    const kept = [...known].filter(([key]) => pods === undefined || pods.has(podOf(key)));
    this.#before = {
      boot,
      restarts: new Map([...kept, ...loops.map(([key, now]) => [key, Math.max(now, known.get(key) ?? 0)] as const)]),
      stalls: stalls === undefined ? stallsBefore : Math.max(stalls, stallsBefore ?? 0),
    };
    return before === undefined ? NONE : { crashRestarts, kernelStalls };
  }
}

const NONE: Growth = { crashRestarts: 0, kernelStalls: 0 };

function podOf(key: string): string {
  return key.slice(0, key.indexOf(" "));
}
