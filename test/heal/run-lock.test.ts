import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownIdentity, type ProcessIdentity } from "../../src/heal/process-identity.ts";
import { acquireRunLock, type RunLockOptions } from "../../src/heal/run-lock.ts";
import { valueOf } from "./workshop.ts";

const program = join(import.meta.dirname, "fixtures", "take-lock.ts");
const own = ownIdentity();
let root: string;
let path: string;
let nonces: number;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "unghost-lock-"));
  path = join(root, "lock");
  nonces = 0;
});
afterEach(() => rmSync(root, { recursive: true }));

function options(changes: Partial<RunLockOptions> = {}): RunLockOptions {
  return {
    path,
    own,
    newNonce: () => `mine${(nonces += 1)}`,
    waitMs: 0,
    pollMs: 10,
    sleep: async () => undefined,
    ...changes,
  };
}

function leaveLock(holder: Partial<ProcessIdentity>, at = path, nonce = "theirs"): void {
  writeFileSync(at, JSON.stringify({ nonce, ...own, ...holder }));
}

/** A pid that is not in use: beyond what the kernel hands out. */
const NOBODY = 2 ** 22 + 1;

describe("acquireRunLock", () => {
  test("takes a free lock, names the holder in it, and leaves nothing when released", async () => {
    const lock = valueOf(await acquireRunLock(options()));

    expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ pid: process.pid, boot: own.boot });
    lock.release();
    expect(readdirSync(root)).toEqual([]);
  });

  test("leaves when a living process holds it, and says which", async () => {
    leaveLock({});

    const attempt = await acquireRunLock(options());

    expect(!attempt.ok && attempt.refusal.message).toBe(
      `Another unghost run is under way: process ${process.pid} holds ${path}.`,
    );
    expect(readdirSync(root)).toEqual(["lock"]);
  });

  test("waits as long as it may, and takes the lock when it is released meanwhile", async () => {
    const first = valueOf(await acquireRunLock(options()));
    let sleeps = 0;
    const sleep = async () => {
      sleeps += 1;
      if (sleeps === 3) first.release();
    };

    expect((await acquireRunLock(options({ waitMs: 100, sleep }))).ok).toBe(true);
    expect(sleeps).toBe(3);
  });

  test("gives up after the time it may wait", async () => {
    leaveLock({});
    let slept = 0;
    const sleep = async (milliseconds: number) => {
      slept += milliseconds;
    };

    expect((await acquireRunLock(options({ waitMs: 100, sleep }))).ok).toBe(false);
    expect(slept).toBe(100);
  });

  test.each([
    ["whose process is gone", { pid: NOBODY }],
    ["whose pid was given to another process", { startedSecondsAfterBoot: own.startedSecondsAfterBoot - 1 }],
    ["of an earlier boot", { boot: "an-earlier-boot", pidNamespace: "pid:[1]" }],
  ])("takes over a lock %s", async (_name, holder) => {
    leaveLock(holder);

    const lock = valueOf(await acquireRunLock(options()));

    expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ pid: process.pid });
    expect(readdirSync(root)).toEqual(["lock"]);
    lock.release();
    expect(existsSync(path)).toBe(false);
  });

  test("takes over a lock whose holder is a zombie that nobody reaps", async () => {
    // By the time the shell's child ends, exec has replaced the shell by a program that never waits for it.
    const parent = spawn("sh", ["-c", "sleep 0.2 & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] });
    try {
      const pid = Number(
        await new Promise<string>((resolve) => parent.stdout.once("data", (data: Buffer) => resolve(data.toString()))),
      );
      await expect.poll(() => readFileSync(`/proc/${pid}/stat`, "utf8"), { timeout: 30_000 }).toContain(") Z ");
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ");
      leaveLock({ pid, startedSecondsAfterBoot: Number(fields?.[19]) / 100 });

      expect((await acquireRunLock(options())).ok).toBe(true);
    } finally {
      parent.kill("SIGKILL");
    }
  });

  test("does not judge a holder in another pid namespace by its pid", async () => {
    leaveLock({ pid: NOBODY, pidNamespace: "pid:[1]" });

    expect((await acquireRunLock(options())).ok).toBe(false);
  });

  test.each(["", "{", "\0\0\0\0", '{"pid":"x"}'])("takes over a lock that a power cut left as %j", async (content) => {
    writeFileSync(path, content);

    expect((await acquireRunLock(options())).ok).toBe(true);
  });

  test("takes over a lock whose take-over was itself killed, twice", async () => {
    leaveLock({ pid: NOBODY }, path, "first");
    leaveLock({ pid: NOBODY }, `${path}.first`, "second");
    leaveLock({ pid: NOBODY }, `${path}.first.second`, "third");
    leaveLock({ pid: NOBODY }, `${path}.other.draft`, "other");

    expect((await acquireRunLock(options())).ok).toBe(true);
    expect(readdirSync(root)).toEqual(["lock"]);
  });

  test("leaves a dead lock to whoever is taking it over already", async () => {
    leaveLock({ pid: NOBODY }, path, "first");
    leaveLock({}, `${path}.first`, "second");

    expect((await acquireRunLock(options())).ok).toBe(false);
  });

  test("does not release a lock that somebody removed by hand and another took", async () => {
    const first = valueOf(await acquireRunLock(options()));
    rmSync(path);
    valueOf(await acquireRunLock(options()));

    first.release();

    expect(existsSync(path)).toBe(true);
  });

  test("says so when it cannot write", async () => {
    const attempt = await acquireRunLock(options({ path: join(root, "missing", "lock") }));

    expect(!attempt.ok && attempt.refusal.message).toMatch(/cannot be taken: there is no such file or directory/);
  });
});

describe("a race for the lock of a dead process", () => {
  const RACERS = 20;
  const ROUNDS = 15;
  const KILLED = 6;

  test(`${RACERS} processes, ${KILLED} of them killed holding it: never two inside`, { timeout: 240_000 }, async () => {
    leaveLock({ pid: NOBODY });
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

    // Whoever meets somebody inside fails on mkdir and ends with 1.
    expect(ends.toSorted()).toEqual([...Array(RACERS - KILLED).fill("0"), ...Array(KILLED).fill("SIGKILL")]);
    expect(readFileSync(join(root, "log"), "utf8")).toHaveLength(RACERS * ROUNDS);
  });
});
