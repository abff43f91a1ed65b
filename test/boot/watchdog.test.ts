import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";

const PROGRAM = join(import.meta.dirname, "fixtures", "watched.ts");
const HANG_GUARD_MS = 120_000;
/** So long that only the end of the watched process can have ended its watchdog. */
const NEVER = "100000";

function watched(...args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

describe("boot watchdog", { timeout: HANG_GUARD_MS }, () => {
  test("kills a process whose event loop is blocked", async () => {
    const [code, signal] = await once(watched("1"), "exit");

    expect([code, signal]).toEqual([null, "SIGKILL"]);
  });

  test("kills a process that is stopped", async () => {
    const child = watched("2");
    const ended = once(child, "exit");
    if (child.stdout !== null) await once(child.stdout, "data");
    child.kill("SIGSTOP");

    expect(await ended).toEqual([null, "SIGKILL"]);
  });

  test("exits with the process that it watches, however that ends", async () => {
    const child = watched(NEVER);
    const ended = once(child, "exit");
    if (child.stdout !== null) await once(child.stdout, "data");
    const pids = await until(() => {
      const found = childrenOf(child.pid ?? 0);
      return found.length > 0 ? found : undefined;
    });
    child.kill("SIGKILL");
    await ended;

    await until(() => (pids.some((pid) => existsSync(`/proc/${pid}`)) ? undefined : true));
    expect((await once(watched(NEVER, "end"), "exit"))[0]).toBe(0);
  });
});

function childrenOf(parent: number): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const [, fields = ""] = /\) \S (.*)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
      return Number(fields.split(" ")[0]) === parent;
    } catch {
      return false;
    }
  });
}

async function until<T>(probe: () => T | undefined): Promise<T> {
  for (;;) {
    const seen = probe();
    if (seen !== undefined) return seen;
    await sleep(20);
  }
}
