import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../lab/poll.ts";
import type { Result } from "./result.ts";

/** Kubelet's default limit of pods. */
const PODS = "110";
const MAX_MB = 60;
const MAX_GROWTH = 1.05;
const MAX_CPU_PERCENT = 0.5;
/** By then caches are filled. */
const EARLY_SCANS = 100;
const LATE_SCANS = 2000;
const GUARD_MS = 1_800_000;
/** Two scans of the default interval, and the idle time between them. */
const IDLE_MS = 120_000;
/** The start does not count. */
const GRACE_MS = 5000;
/** USER_HZ, the unit of CPU times, on every Linux that unghost supports. */
const TICKS_A_SECOND = 100;

export interface AgentBench {
  readonly lateScans?: number;
}

/** The agent's cost on a healthy node: memory over thousands of fast scans, CPU time at the default interval. */
export async function benchAgent(unghost: string, { lateScans = LATE_SCANS }: AgentBench = {}): Promise<Result> {
  const program = resolve(import.meta.dirname, "crowded-node.ts");
  const server = spawn(process.execPath, [program, PODS, "ready"], { stdio: ["pipe", "pipe", "inherit"] });
  const [root] = (await once(createInterface(server.stdout), "line")) as [string];
  try {
    const { earlyMb, lateMb } = await memoryOverScans(unghost, root, lateScans);
    const percent = await idlePercent(unghost, root);
    return {
      title: `the agent on a well (simulated) node with ${PODS} pods`,
      rows: [],
      bars: [
        { name: `memory after ${lateScans} scans, MB`, value: lateMb, most: MAX_MB },
        { name: `memory, scan ${lateScans} / scan ${EARLY_SCANS}`, value: lateMb / earlyMb, most: MAX_GROWTH },
        { name: "processor when idle, percent of one", value: percent, most: MAX_CPU_PERCENT },
      ],
      notes: [],
    };
  } finally {
    const ended = once(server, "exit");
    server.stdin.end();
    await ended;
  }
}

async function memoryOverScans(
  unghost: string,
  root: string,
  lateScans: number,
): Promise<{ readonly earlyMb: number; readonly lateMb: number }> {
  const agent = startAgent(unghost, root, ["--scan-every", "10ms", "--log-level", "debug"]);
  let scans = 0;
  createInterface(agent.stdout).on("line", (line) => {
    if (line.includes('"msg":"scanned"')) scans++;
  });
  try {
    const rssAfter = (count: number): Promise<number> =>
      until(`${count} scans`, GUARD_MS, () => (scans >= count ? rssMb(agent) : undefined));
    const earlyMb = await rssAfter(EARLY_SCANS);
    return { earlyMb, lateMb: await rssAfter(lateScans) };
  } finally {
    await stopped(agent);
  }
}

async function idlePercent(unghost: string, root: string): Promise<number> {
  const agent = startAgent(unghost, root, []);
  try {
    await sleep(GRACE_MS);
    const before = cpuMs(agent);
    await sleep(IDLE_MS);
    return ((cpuMs(agent) - before) / IDLE_MS) * 100;
  } finally {
    await stopped(agent);
  }
}

function startAgent(unghost: string, root: string, args: readonly string[]): ChildProcessByStdio<null, Readable, null> {
  const common = ["agent", "--no-kube", "--listen", "127.0.0.1:0", "--host-root", root];
  return spawn(unghost, [...common, ...args], { env: { PATH: "/usr/bin:/bin" }, stdio: ["ignore", "pipe", "ignore"] });
}

async function stopped(agent: ChildProcess): Promise<void> {
  const exit = once(agent, "exit");
  agent.kill("SIGTERM");
  await exit;
}

function rssMb({ pid }: ChildProcess): number {
  const [, kilobytes = "0"] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}

function cpuMs({ pid }: ChildProcess): number {
  // The fields after the name, which may contain anything in its parentheses: utime and stime are the 12th and 13th.
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return ((Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND) * 1000;
}
