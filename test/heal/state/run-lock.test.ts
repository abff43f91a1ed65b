import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  acquireRunLock,
  ownIdentity,
  type ProcessIdentity,
  type RunLockOptions,
} from "../../../src/heal/state/run-lock.ts";
import { valueOf } from "../heal-fixture.ts";

const program = join(import.meta.dirname, "fixtures", "take-lock.ts");
const own = ownIdentity();
const HANG_GUARD_MS = 240_000;
let root: string;
let path: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "unghost-lock-"));
  path = join(root, "lock");
});
afterEach(() => rmSync(root, { recursive: true }));

function options(changes: Partial<RunLockOptions> = {}): RunLockOptions {
  return { path, own, waitMs: 0, ...changes };
}

/** The lock file that a killed holder leaves. */
function leaveFile(holder: Partial<ProcessIdentity>): void {
  writeFileSync(path, JSON.stringify({ ...own, ...holder }));
}

/** An unused pid, above the kernel's maximum. */
const FREE_PID = 2 ** 22 + 1;

describe("acquireRunLock", () => {
  test("takes a free lock, writes the holder into it, and releases it", async () => {
    const lock = valueOf(await acquireRunLock(options()));

    expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ pid: process.pid, boot: own.boot });
    lock.release();
    valueOf(await acquireRunLock(options())).release();
    expect(readFileSync(path, "utf8")).toBe("");
  });

  test("is refused while another process holds the lock, and names that process", async () => {
    const first = valueOf(await acquireRunLock(options()));

    const attempt = await acquireRunLock(options());

    expect(!attempt.ok && attempt.refusal).toMatchObject({
      message: `Another unghost run is under way: process ${process.pid} holds ${path}.`,
      kind: "lock",
    });
    first.release();
  });

  test("waits up to its timeout, and takes the lock when it is released meanwhile", async () => {
    const first = valueOf(await acquireRunLock(options()));
    const waiting = acquireRunLock(options({ waitMs: HANG_GUARD_MS }));
    await sleep(100);
    first.release();

    valueOf(await waiting).release();
  });

  test("fails when the timeout has passed", async () => {
    const first = valueOf(await acquireRunLock(options()));

    expect((await acquireRunLock(options({ waitMs: 300 }))).ok).toBe(false);
    first.release();
  });

  test.each([
    ["of a process that is gone", { pid: FREE_PID }],
    ["that names a running process without the lock", {}],
    ["of an earlier boot", { boot: "an-earlier-boot", pidNamespace: "pid:[1]" }],
    ["of an unreadable pid namespace", { pid: FREE_PID, pidNamespace: "pid:[1]" }],
  ])("takes over a lock file %s", async (_name, holder) => {
    leaveFile(holder);

    valueOf(await acquireRunLock(options())).release();
  });

  test.each(["", "{", "\0\0\0\0", '{"pid":"x"}'])(
    "takes over a lock file that a power cut left as %j",
    async (content) => {
      writeFileSync(path, content);

      valueOf(await acquireRunLock(options())).release();
    },
  );

  test.each([
    ["a dangling symbolic link", () => symlinkSync("/nowhere/lock", path), /symbolic link/],
    ["a symbolic link to a file", () => symlinkSync(program, path), /symbolic link/],
    ["a symbolic link to itself", () => symlinkSync(path, path), /symbolic link/],
    ["a directory", () => mkdirSync(path), /directory/],
    ["a FIFO", () => execFileSync("mkfifo", [path]), /not a regular file|FIFO/],
  ])("refuses %s as lock file", async (_what, make, reason) => {
    make();

    const attempt = await acquireRunLock(options({ waitMs: 1000 }));

    expect(!attempt.ok && attempt.refusal.message).toMatch(reason);
    expect(!attempt.ok && attempt.refusal.next).toContain("remove it");
    expect(existsSync("/nowhere/lock")).toBe(false);
  });

  test("is not inherited by child processes", async () => {
    const lock = valueOf(await acquireRunLock(options()));
    const child = spawn("sleep", ["1000"], { stdio: "ignore", detached: true });
    lock.release();

    valueOf(await acquireRunLock(options())).release();
    child.kill("SIGKILL");
  });

  test("returns an error when it cannot write", async () => {
    const attempt = await acquireRunLock(options({ path: join(root, "missing", "lock") }));

    expect(!attempt.ok && attempt.refusal.message).toMatch(/cannot be taken: .*no such file or directory/);
  });
});

describe("a race for the lock", () => {
  const RACERS = 12;
  const ROUNDS = 8;
  const KILLED = 4;

  test(`${RACERS} processes, ${KILLED} of them killed while holding it: never two holders`, {
    timeout: HANG_GUARD_MS,
  }, async () => {
    const racers = Array.from({ length: RACERS }, (_unused, index) => {
      const args = [program, root, String(ROUNDS), index < KILLED ? "killed" : "orderly"];
      const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
      const ready = new Promise<void>((resolve) => child.stdout.once("data", () => resolve()));
      const ended = new Promise<string>((resolve) =>
        child.once("close", (code, signal) => resolve(signal ?? String(code))),
      );
      return { ready, ended };
    });
    await Promise.all(racers.map(({ ready }) => ready));

    writeFileSync(join(root, "start"), "");
    const ends = await Promise.all(racers.map(({ ended }) => ended));

    // A process that finds another holder fails on mkdir and exits with 1.
    expect(ends.toSorted()).toEqual([...Array(RACERS - KILLED).fill("0"), ...Array(KILLED).fill("SIGKILL")]);
    expect(readFileSync(join(root, "log"), "utf8")).toHaveLength(RACERS * ROUNDS);
  });
});
