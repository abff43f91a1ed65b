import { readdirSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { RuntimeError } from "../../src/runtime/errors.ts";
import type { LabNode } from "../node.ts";
import { type LabPod, runPod, sandboxConfig } from "../pods.ts";
import { tornFiles } from "../torn-files.ts";
import type { Random } from "./random.ts";

/** The result of one power cut on a node that was creating and deleting pods. */
export interface CutResult {
  /** The age of each torn file at the cut, youngest first. */
  readonly tornAgesMs: readonly number[];
  /** Pods that were running at the cut, and how many of them did not come back. */
  readonly pods: number;
  readonly lost: number;
}

/** ext4 commits the names of new files every 5 s: cuts come before and after. */
const SHORTEST_CHURN_MS = 2000;
const LONGEST_CHURN_MS = 9000;
/**
 * Unmounting the overlay of a stopped sandbox makes the kernel sync the whole file system below it: while pods are
 * deleted, nothing stays unsynced for long. On many nodes pods are only created in the seconds before a cut.
 */
const LONGEST_WITHOUT_DELETES_MS = 8000;
const WORKERS = 2;
const CALL = { timeoutMs: 60_000 };
/** kubelet would retry forever; a pod that is not back by then is stuck. */
const PATIENCE_MS = 10_000;
const RETRY_MS = 500;

/**
 * Creates and deletes pods until a random moment; then the power is cut, the node boots, and its pods are started
 * again.
 */
export async function cutDuringChurn(
  node: LabNode,
  random: Random,
  round: number,
  boot: () => Promise<void>,
): Promise<CutResult> {
  const stop = new AbortController();
  const running = new Map<string, LabPod>();
  const churnMs = SHORTEST_CHURN_MS + random.below(LONGEST_CHURN_MS - SHORTEST_CHURN_MS);
  const deleteUntil = performance.now() + churnMs - random.below(LONGEST_WITHOUT_DELETES_MS);
  const churning = Array.from({ length: WORKERS }, (_, worker) =>
    churn(node, random, running, { prefix: `cut${round}-${worker}`, deleteUntil, stop: stop.signal }),
  );
  await sleep(churnMs);
  stop.abort();
  const pods = [...running.values()];
  await node.powerCut();
  await Promise.all(churning);
  const torn = tornFiles(node);
  await boot();
  const back = await Promise.all(pods.map((pod) => comesBack(node, pod)));
  return {
    tornAgesMs: torn.map(({ changedAtMs }) => Math.round(node.cutAtMs - changedAtMs)).toSorted((a, b) => a - b),
    pods: pods.length,
    lost: back.filter((isBack) => !isBack).length,
  };
}

async function churn(
  node: LabNode,
  random: Random,
  running: Map<string, LabPod>,
  { prefix, deleteUntil, stop }: { readonly prefix: string; readonly deleteUntil: number; readonly stop: AbortSignal },
): Promise<void> {
  for (let count = 0; !stop.aborted; count++) {
    try {
      if (running.size < 4 || performance.now() > deleteUntil || random.chance(0.6)) {
        const name = `${prefix}-${count}`;
        const pod = await runPod(node, { name, containers: [{ name: "main" }] });
        if (!stop.aborted) running.set(name, pod);
      } else {
        const name = random.pick([...running.keys()]);
        const pod = running.get(name);
        running.delete(name);
        if (pod !== undefined) await removePod(node, pod.sandboxId);
      }
    } catch (error) {
      // The power was cut meanwhile.
      if (!stop.aborted) throw error;
    }
  }
}

async function stopPod(node: LabNode, id: string): Promise<void> {
  await node.cri.stopPodSandbox(id, CALL).catch((error: unknown) => {
    // The agent removed it first.
    if (!(error instanceof RuntimeError && error.kind === "not-found")) throw error;
  });
}

async function removePod(node: LabNode, id: string): Promise<void> {
  await stopPod(node, id);
  await node.cri.removePodSandbox(id, CALL);
}

/** Like kubelet: the old sandbox has to be stopped before a new one is created. */
async function comesBack(node: LabNode, { ref, sandboxId }: LabPod): Promise<boolean> {
  const next = { ...ref, attempt: ref.attempt + 1 };
  const end = performance.now() + PATIENCE_MS;
  while (performance.now() < end) {
    try {
      await stopPod(node, sandboxId);
      await node.cri.runPodSandbox(sandboxConfig(next, next), CALL);
      return true;
    } catch {
      await sleep(RETRY_MS);
    }
  }
  return false;
}

/** For the next round: no pod, and no damaged file. */
export async function clearPods(node: LabNode): Promise<void> {
  const sandboxes = await node.cri.listPodSandbox(undefined, CALL);
  const stuck: string[] = [];
  for (const { id } of sandboxes) await removePod(node, id).catch(() => stuck.push(id));
  if (stuck.length > 0) {
    for (const { path } of tornFiles(node)) rmSync(node.path(`/var/lib/cni/${path}`));
    for (const id of stuck) await removePod(node, id);
  }
  for (const name of readdirSync(node.path("/var/lib/cni"))) {
    rmSync(node.path(`/var/lib/cni/${name}`), { recursive: true });
  }
  await node.check(["sync", "-f", "/var"]);
}
