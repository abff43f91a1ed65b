import type { PodRef } from "../../src/node/types/ids.ts";
import { liftOrder } from "../cni-gate.ts";
import { emptyLease, leakedLease } from "../faults/host-local.ts";
import { hungAdd } from "../faults/hung-plugin.ts";
import type { Injected } from "../faults/injected.ts";
import { interruptedRun } from "../faults/interrupted-run.ts";
import { leakedContainerdLease } from "../faults/leaked-containerd-lease.ts";
import { leakedNetns, leftoverNetnsFile } from "../faults/leaked-netns.ts";
import { orphanedCache } from "../faults/orphaned-cache.ts";
import { acceptDel, failedRollback, refusingDel } from "../faults/refusing-plugin.ts";
import { emptyResultCache, halfWrittenResultCache } from "../faults/result-cache.ts";
import { logCreateTimeout } from "../kubelet-log.ts";
import type { LabNode } from "../node.ts";
import type { LabPod } from "../pods.ts";
import { containerdRelease } from "../runtimes.ts";
import { hostileEntry } from "./hostile-entry.ts";
import type { Random } from "./random.ts";

/** The targets of faults: dead pods, running pods, and unused names and addresses. */
export interface Stage {
  readonly node: LabNode;
  readonly random: Random;
  readonly ghosts: readonly LabPod[];
  readonly ready: readonly LabPod[];
  readonly newName: () => string;
  readonly newAddress: () => string;
}

/** A fault, and what must be repaired before it can be healed, if anything. */
export interface Fault {
  readonly did: string;
  readonly repair?: () => Promise<void>;
  /** A pod that waits for its sandbox, with a report of kubelet. */
  readonly waiting?: PodRef;
}

type Injector = (stage: Stage) => Promise<Injected | Fault | undefined>;

/** Files of the CNI cache, leases, namespaces and leaks: faults without a dead pod. */
const ANYWHERE: readonly Injector[] = [
  ({ node, random }) => orphanedCache(node, random.pick(["results", "multus", "flannel"])),
  ({ node, newAddress }) => leakedLease(node, newAddress()),
  ({ node, newAddress }) => emptyLease(node, newAddress()),
  ({ node }) => leakedNetns(node),
  ({ node }) => leftoverNetnsFile(node),
  async ({ node, newName }) => {
    const { did, ref } = await hungAdd(node, { name: newName() });
    logCreateTimeout(node, ref);
    return { did, waiting: ref };
  },
  ({ node, newName }) => interruptedRun(node, { name: newName() }),
  async ({ node, newName }) => {
    const name = newName();
    const left = await failedRollback(node, { name });
    return { did: left?.did ?? `made ADD and roll-back of ${name} fail`, repair: () => liftOrder(node, "DEL", name) };
  },
  ({ node }) => (containerdRelease(node.runtime).leases ? leakedContainerdLease(node) : Promise.resolve(undefined)),
  ({ node, random }) => hostileEntry(node, random.pick(["symlink", "fifo", "directory", "sparse"])),
  // A running pod with a broken cache fails later; now it must not be touched.
  ({ node, random, ready }) => emptyResultCache(node, random.pick(ready)),
];

const ON_GHOSTS: readonly Injector[] = [
  ({ node, random, ghosts }) => emptyResultCache(node, random.pick(ghosts)),
  ({ node, random, ghosts }) => halfWrittenResultCache(node, random.pick(ghosts)),
  async ({ node, random, ghosts }) => {
    const pod = random.pick(ghosts);
    const { did } = await refusingDel(node, pod);
    return { did, repair: () => acceptDel(node, pod) };
  },
];

export async function injectOne(stage: Stage): Promise<Fault | undefined> {
  const injectors = stage.ghosts.length > 0 ? [...ANYWHERE, ...ON_GHOSTS, ...ON_GHOSTS] : ANYWHERE;
  return await stage.random.pick(injectors)(stage);
}
