import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { interleaved, measure, type Run } from "./measure.ts";
import type { Result } from "./result.ts";

const ROUNDS = 7;
const COUNTS = [50, 500, 5000] as const;

/** The cost per sandbox must not grow with their number; timings of a shared machine need a tolerance. */
const MAX_GROWTH = 2;
const MAX_SECONDS = 1;
const MAX_MB = 120;

interface Crowd {
  readonly count: number;
  readonly root: string;
  readonly server: ChildProcess;
}

/** The cost of a scan with many sandboxes on the (simulated) node, all running or all dead after a power cut. */
export async function benchCrowdedNode(unghost: string, fate: "ready" | "dead"): Promise<Result> {
  const crowds = await Promise.all(COUNTS.map((count) => startCrowd(count, fate)));
  try {
    const scans = new Map(crowds.map(({ count, root }) => [`${count}`, () => scan(unghost, root)] as const));
    const costs = await interleaved(scans, ROUNDS);
    const [few, some, many] = COUNTS.map((count) => costs.get(`${count}`));
    if (few === undefined || some === undefined || many === undefined) throw new Error("a crowd was not scanned");
    const growth = (of: "minMs" | "peakMb"): number => (many[of] - some[of]) / 4500 / ((some[of] - few[of]) / 450);
    return {
      title: `scan of a simulated node with many sandboxes, all ${fate}`,
      rows: [...costs].map(([count, summary]) => ({ name: `${count} sandboxes`, summary })),
      bars: [
        { name: "500 sandboxes, seconds", value: some.minMs / 1000, most: MAX_SECONDS },
        { name: "500 sandboxes, peak MB", value: some.peakMb, most: MAX_MB },
        { name: "time of one more sandbox, 500-5000 / 50-500", value: growth("minMs"), most: MAX_GROWTH },
        { name: "memory of one more, 500-5000 / 50-500", value: growth("peakMb"), most: MAX_GROWTH },
      ],
      notes: [],
    };
  } finally {
    await Promise.all(crowds.map(endCrowd));
  }
}

async function startCrowd(count: number, fate: string): Promise<Crowd> {
  const program = resolve(import.meta.dirname, "crowded-node.ts");
  const server = spawn(process.execPath, [program, String(count), fate], { stdio: ["pipe", "pipe", "inherit"] });
  const [root] = (await once(createInterface(server.stdout), "line")) as [string];
  return { count, root, server };
}

async function endCrowd({ server }: Crowd): Promise<void> {
  const ended = once(server, "exit");
  server.stdin?.end();
  await ended;
}

/** The table format, which is the default; it lists a few and counts the rest. */
async function scan(unghost: string, root: string): Promise<Run> {
  const run = await measure([unghost, "scan", "--no-kube", "--timeout", "60s", "--host-root", root], {
    PATH: "/usr/bin:/bin",
  });
  if (run.code !== 0 && run.code !== 1) throw new Error(`the scan of ${root} ended with ${run.code}`);
  return run;
}
