import { existsSync } from "node:fs";
import { type CutResult, clearPods, cutDuringChurn } from "../lab/chaos/power-cut-round.ts";
import { seeded } from "../lab/chaos/random.ts";
import { whyNoLoopDisk } from "../lab/loop-disk.ts";
import { type LabNode, startNode } from "../lab/node.ts";
import { until } from "../lab/poll.ts";
import type { RuntimeVersion } from "../lab/runtimes.ts";
import { service } from "../lab/service.ts";
import type { Result } from "./result.ts";

/** What runs on the node while pods are created, and after it has booted. */
export type Helper = "none" | "keep" | "agent";

const COMMANDS: Readonly<Record<Exclude<Helper, "none">, readonly string[]>> = {
  keep: ["keep"],
  agent: ["agent", "--no-kube", "--listen", ""],
};

export interface PowerCutsOptions {
  readonly unghost: string;
  readonly runtime: RuntimeVersion;
  readonly helper: Helper;
  readonly cuts: number;
  readonly seed: number;
  readonly onCut?: (result: CutResult) => void;
}

const OLD_MS = 2000;
const START_MS = 60_000;

/** Power cuts at random times while pods are created and deleted, on an ext4 loop device. */
export async function benchPowerCuts(options: PowerCutsOptions): Promise<Result> {
  const { unghost, runtime, helper, cuts, seed } = options;
  const title = `${cuts} power cuts (seed ${seed}) under churn, containerd ${runtime}, ${WORDS[helper]}`;
  const why = await whyNoLoopDisk("ext4");
  if (why !== undefined) return { title, rows: [], bars: [], notes: [`not run: ${why}. make chaos injects faults`] };
  const random = seeded(seed);
  const node = await startNode({ runtime, disk: "ext4" });
  const results: CutResult[] = [];
  try {
    await startHelper(node, unghost, helper);
    for (let round = 0; round < cuts; round++) {
      const result = await cutDuringChurn(node, random, round, async () => {
        await node.powerOn();
        await startHelper(node, unghost, helper);
      });
      options.onCut?.(result);
      results.push(result);
      await clearPods(node);
    }
  } finally {
    await node.destroy();
  }
  const sum = (key: "pods" | "lost"): number => results.reduce((total, result) => total + result[key], 0);
  const ages = results.flatMap(({ tornAgesMs }) => tornAgesMs).toSorted((one, other) => one - other);
  const old = ages.filter((age) => age > OLD_MS).length;
  const isKept = helper !== "none";
  return {
    title,
    rows: [],
    bars: [
      ...(isKept ? [{ name: "torn files older than 2 s", value: old, most: 0 }] : []),
      ...(helper === "agent" ? [{ name: "pods that did not come back", value: sum("lost"), most: 0 }] : []),
    ],
    notes: [
      `${ages.length} torn files, ${old} of them older than 2 s${describeAges(ages)}; ` +
        `${sum("lost")} of ${sum("pods")} pods did not come back`,
    ],
  };
}

function describeAges(ages: readonly number[]): string {
  if (ages.length === 0) return "";
  return ` (age: median ${ages[Math.floor(ages.length / 2)]} ms, oldest ${ages.at(-1)} ms)`;
}

const WORDS: Readonly<Record<Helper, string>> = {
  none: "without unghost",
  keep: "with unghost keep",
  agent: "with the agent",
};

async function startHelper(node: LabNode, unghost: string, helper: Helper): Promise<void> {
  if (helper === "none") return;
  await service(node, helper, `/var/log/${helper}.log`, [unghost, ...COMMANDS[helper]]).start();
  const state = node.livePath("/run/unghost/keeper.json");
  await until(`${helper} keeps files durable`, START_MS, () => existsSync(state) || undefined);
}
