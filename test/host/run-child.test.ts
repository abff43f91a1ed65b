import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { getPriority, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { until } from "../../lab/poll.ts";
import { failureOf, runChild } from "../../src/host/child.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "unghost-child-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

function sh(script: string): readonly string[] {
  return ["sh", "-c", script];
}

/** Pids that a script wrote, one per file; gone once /proc does not have them any more, including zombies. */
function isAlive(file: string): boolean {
  const pid = readFileSync(join(dir, file), "utf8").trim();
  return existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
}

const SHORT = { timeoutMs: 300, graceMs: 100 };

describe("runChild", () => {
  test("passes input and returns output, exit code and stderr", async () => {
    const result = await runChild(sh("cat; echo oops >&2; exit 3"), { input: "hello", timeoutMs: 60_000 });

    expect(result).toEqual({ end: { kind: "exited", code: 3 }, stdout: "hello", stderr: "oops\n" });
  });

  test("makes the child the leader of its own process group", async () => {
    const { stdout } = await runChild(sh("cut -d ' ' -f 1,5 /proc/$$/stat"), { timeoutMs: 60_000 });

    const [pid, group] = stdout.trim().split(" ");
    expect(group).toBe(pid);
  });

  test.runIf(process.getuid?.() === 0)(
    "gives the child the default priority even when its parent has a higher one",
    async () => {
      const before = getPriority();
      onTestFinished(() => setPriority(before));
      setPriority(-5);

      const isLowered = `until [ "$(cut -d ' ' -f 19 /proc/$$/stat)" = 0 ]; do sleep 0.01; done`;
      const { end } = await runChild(sh(isLowered), { timeoutMs: 60_000 });

      expect(end).toEqual({ kind: "exited", code: 0 });
    },
  );

  test("kills a child that ignores SIGTERM, with its descendants", async () => {
    const script = `trap '' TERM; echo $$ >${dir}/leader; sleep 1000 & echo $! >${dir}/below; sleep 1000`;

    const result = await runChild(sh(script), SHORT);

    expect(result.end).toEqual({ kind: "timed-out", afterMs: 300 });
    expect(failureOf(result)).toContain("was killed");
    await until("the process group is gone", 30_000, () => (isAlive("leader") || isAlive("below") ? undefined : true));
  });

  test("kills the group when the child ends by SIGTERM and a descendant does not", async () => {
    const script = `(trap '' TERM; sleep 1000) & echo $! >${dir}/below; echo $$ >${dir}/leader; wait`;

    await runChild(sh(script), SHORT);

    await until("the process group is gone", 30_000, () => (isAlive("leader") || isAlive("below") ? undefined : true));
  });

  test("returns when the child exits, even when a descendant holds its pipes", async () => {
    const result = await runChild(sh(`sleep 1000 & echo $! >${dir}/below; echo done`), { timeoutMs: 60_000 });

    expect(result).toMatchObject({ end: { kind: "exited", code: 0 }, stdout: "done\n" });
    process.kill(Number(readFileSync(join(dir, "below"), "utf8")), "SIGKILL");
  });

  test("times out when a descendant with its own session holds the pipes", async () => {
    const script = `trap '' TERM; setsid sh -c 'echo $$ >${dir}/below; sleep 1000' & sleep 1000`;

    const result = await runChild(sh(script), { timeoutMs: 1000, graceMs: 100 });

    expect(result.end.kind).toBe("timed-out");
    process.kill(Number(readFileSync(join(dir, "below"), "utf8")), "SIGKILL");
  });

  test("stops the child on an abort signal", async () => {
    const stop = new AbortController();
    const running = runChild(sh("trap '' TERM; while :; do sleep 0.05; done"), {
      timeoutMs: 600_000,
      graceMs: 50,
      signal: stop.signal,
    });
    stop.abort();

    expect((await running).end).toEqual({ kind: "aborted" });
  });

  test("keeps a limited amount of endless output", async () => {
    const result = await runChild(["yes"], { ...SHORT, maxOutputBytes: 1000 });

    expect(result.stdout).toHaveLength(1000);
    expect(result.end.kind).toBe("timed-out");
  });

  test.each([
    ["a program that does not exist", ["/nowhere/program"], "ENOENT"],
    ["an argument with a NUL", ["true", "a\0b"], "null bytes"],
  ])("a child that cannot be started is a result: %s", async (_what, command, words) => {
    const result = await runChild(command, { timeoutMs: 60_000 });

    expect(failureOf(result)).toContain("could not be started");
    expect(failureOf(result)).toContain(words);
  });

  test("a program that does not read its input is not an error", async () => {
    const result = await runChild(["true"], { input: "x".repeat(1_000_000), timeoutMs: 60_000 });

    expect(result.end).toEqual({ kind: "exited", code: 0 });
  });
});
