import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";

/** One run of a command, from its start to its end. */
export interface Run {
  readonly ms: number;
  readonly code: number | null;
  /** The observed memory peak. */
  readonly peakMb: number;
}

const SAMPLE_MS = 1;

/**
 * The kernel keeps a process's peak only while it exists, and Node does not report it for a child, so it is sampled
 * often.
 */
export function measure(command: readonly string[], env: Readonly<Record<string, string>>): Promise<Run> {
  const [file = "", ...args] = command;
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const child = spawn(file, args, { env, stdio: ["ignore", "pipe", "ignore"] });
    let peakMb = 0;
    const sample = (): void => {
      peakMb = Math.max(peakMb, peakOf(child.pid));
    };
    const sampling = setInterval(sample, SAMPLE_MS);
    // The report is printed at the end, when memory usage is highest.
    child.stdout.on("data", sample);
    child.once("error", reject);
    child.once("exit", (code) => {
      const ms = performance.now() - startedAt;
      clearInterval(sampling);
      resolve({ ms, code, peakMb });
    });
  });
}

function peakOf(pid: number | undefined): number {
  try {
    const [, kilobytes = "0"] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kilobytes) / 1024;
  } catch {
    // It ended between two samples: the last one counts.
    return 0;
  }
}

export interface Summary {
  readonly minMs: number;
  readonly medianMs: number;
  readonly peakMb: number;
}

function summary(runs: readonly Run[]): Summary {
  const times = runs.map(({ ms }) => ms).toSorted((one, other) => one - other);
  return {
    minMs: times[0] ?? 0,
    medianMs: times[Math.floor(times.length / 2)] ?? 0,
    peakMb: Math.max(...runs.map(({ peakMb }) => peakMb)),
  };
}

/**
 * Runs the commands in turns, so that other load on the machine affects all of them alike. The first round fills the
 * page cache and is not counted.
 */
export async function interleaved(
  commands: ReadonlyMap<string, () => Promise<Run>>,
  rounds: number,
): Promise<ReadonlyMap<string, Summary>> {
  const runs = new Map<string, Run[]>();
  for (let round = 0; round <= rounds; round++) {
    for (const [name, command] of commands) {
      const run = await command();
      if (round > 0) runs.set(name, [...(runs.get(name) ?? []), run]);
    }
  }
  return new Map([...runs].map(([name, list]) => [name, summary(list)]));
}
