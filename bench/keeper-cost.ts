import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { whyNoLoopDisk } from "../lab/loop-disk.ts";
import { type LabNode, startNode } from "../lab/node.ts";
import { runPod } from "../lab/pods.ts";
import { until } from "../lab/poll.ts";
import { type Service, service } from "../lab/service.ts";
import { mountSlowDisk, type SlowDisk, whyNoSlowDisk } from "../lab/slow-disk.ts";
import type { Result } from "./result.ts";

const BLOCKS = 12;
const PODS_A_BLOCK = 10;
/** Five pods per second, each created and deleted. */
const EVERY_MS = 200;
const MAX_TIMES_WITHOUT = 1.05;
const CNI_DIR = "/var/lib/cni";
const CALL = { timeoutMs: 60_000 };
const GUARD_MS = 60_000;
/** USER_HZ, the unit of CPU times. */
const TICKS_A_SECOND = 100;

interface Latencies {
  readonly add: number[];
  readonly del: number[];
}

export interface KeeperCostOptions {
  readonly blocks?: number;
  /** Put the plugins' files on a disk that is limited to this many writes per second. */
  readonly slowWritesPerSecond?: number;
}

/** The keeper's cost while pods are created and deleted: with and without it in turns, on an ext4 loop device. */
export async function benchKeeperCost(unghost: string, options: KeeperCostOptions = {}): Promise<Result> {
  const { blocks = BLOCKS, slowWritesPerSecond } = options;
  const slow =
    slowWritesPerSecond === undefined ? "" : `, ${CNI_DIR} on a disk with ${slowWritesPerSecond} writes a second`;
  const title = `pods made and deleted at 5 a second, with and without unghost keep, ${blocks} blocks of ${PODS_A_BLOCK} each by turns${slow}`;
  const why = (await whyNoLoopDisk("ext4")) ?? (slowWritesPerSecond === undefined ? undefined : whyNoSlowDisk());
  if (why !== undefined) return { title, rows: [], bars: [], notes: [`not run: ${why}`] };
  const node = await startNode({ disk: "ext4" });
  const keeper = service(node, "keep", "/var/log/keep.log", [unghost, "keep"]);
  const without: Latencies = { add: [], del: [] };
  const kept: Latencies = { add: [], del: [] };
  let cpuMs = 0;
  let peakMb = 0;
  let disk: SlowDisk | undefined;
  try {
    if (slowWritesPerSecond !== undefined) disk = await mountSlowDisk(node, CNI_DIR, slowWritesPerSecond);
    // The first pods of a node are slower than the rest.
    await churn(node, "warm", { add: [], del: [] });
    for (let block = 0; block < blocks; block++) {
      await churn(node, `without-${block}`, without);
      await startKeeper(node, keeper, block);
      const before = cpuMsOf(node, keeper);
      await churn(node, `kept-${block}`, kept);
      cpuMs += cpuMsOf(node, keeper) - before;
      peakMb = Math.max(peakMb, rssMbOf(node, keeper));
      await keeper.end("TERM");
    }
  } finally {
    disk?.release();
    await node.destroy();
  }
  const seconds = (blocks * PODS_A_BLOCK * EVERY_MS) / 1000;
  return {
    title,
    rows: [
      { name: "RunPodSandbox without", summary: summary(without.add) },
      { name: "RunPodSandbox with keep", summary: summary(kept.add) },
      { name: "StopPodSandbox without", summary: summary(without.del) },
      { name: "StopPodSandbox with keep", summary: summary(kept.del) },
    ],
    bars: [
      { name: "ADD with / without, median", value: median(kept.add) / median(without.add), most: MAX_TIMES_WITHOUT },
      { name: "DEL with / without, median", value: median(kept.del) / median(without.del), most: MAX_TIMES_WITHOUT },
    ],
    notes: [`the keeper: ${(cpuMs / seconds / 10).toFixed(1)} % of a processor, ${peakMb.toFixed(0)} MB`],
  };
}

async function churn(node: LabNode, name: string, times: Latencies): Promise<void> {
  const pods = Array.from({ length: PODS_A_BLOCK }, async (_, index) => {
    await sleep(index * EVERY_MS);
    const startedAt = performance.now();
    const { sandboxId } = await runPod(node, { name: `${name}-${index}` });
    times.add.push(performance.now() - startedAt);
    const stoppedAt = performance.now();
    await node.cri.stopPodSandbox(sandboxId, CALL);
    times.del.push(performance.now() - stoppedAt);
    await node.cri.removePodSandbox(sandboxId, CALL);
  });
  await Promise.all(pods);
}

async function startKeeper(node: LabNode, keeper: Service, block: number): Promise<void> {
  await keeper.start();
  const starts = (): number =>
    readFileSync(node.path("/var/log/keep.log"), "utf8").split('are kept durable"').length - 1;
  await until("the keeper watches", GUARD_MS, () => starts() > block || undefined);
}

function cpuMsOf(node: LabNode, { pid }: Service): number {
  const fields = readFileSync(node.livePath(`/proc/${pid}/stat`), "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return ((Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND) * 1000;
}

function rssMbOf(node: LabNode, { pid }: Service): number {
  const [, kilobytes = "0"] =
    /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(node.livePath(`/proc/${pid}/status`), "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}

function summary(times: readonly number[]): { minMs: number; medianMs: number; peakMb: number } {
  return { minMs: Math.min(...times), medianMs: median(times), peakMb: 0 };
}

function median(times: readonly number[]): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)] ?? 0;
}
