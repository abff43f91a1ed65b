import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { until } from "../../lab/poll.ts";
import { openAttempts, type Stamp } from "../../src/agent/attempts-file.ts";
import type { Attempt } from "../../src/agent/policy/attempts.ts";
import { withOutlook } from "../../src/cli/earlier-failures.ts";
import { policyFrom } from "../../src/cli/settings/policy.ts";
import { fill, makeSparse, tempDir } from "../node/temp-dir.ts";
import { actionOn, CLASS } from "./planned-action.ts";

const HANG_MS = 30_000;
const NOON = new Date("2026-03-01T12:00:00Z");
const POLICY = policyFrom({});
const uid = process.getuid?.() ?? 0;
const BOOT: Stamp = { at: NOON, boot: { id: "first", uptimeSeconds: 1000 } };

beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => vi.useRealTimers());

interface Opened extends ReturnType<typeof openAttempts> {
  readonly problems: readonly string[];
  /** What failed, in the order of the problems. */
  readonly failed: readonly string[];
}

function open(stateDir: string, stamp: Stamp = BOOT): Opened {
  const problems: string[] = [];
  const failed: string[] = [];
  const onProblem = (problem: string, what: string) => {
    problems.push(problem);
    failed.push(what);
  };
  const kept = openAttempts({ stateDir, uid, stamp: () => stamp, onProblem });
  return { ...kept, problems, failed };
}

function fail({ book }: Opened, ...names: readonly string[]): void {
  const results = names.map(
    (name) => ({ action: actionOn("a", { id: `${CLASS}/${name}` }), outcome: "failed", reason: "busy" }) as const,
  );
  book.record(results, POLICY, performance.now());
}

function attemptsOn({ book }: Opened, name: string): readonly Attempt[] {
  return book.ledger.get(`${CLASS}/${name}`)?.attempts ?? [];
}

/** A directory with one attempt on `a` by a process of the first boot. */
async function afterOneAttempt(): Promise<string> {
  const stateDir = join(tempDir(), "state");
  const first = open(stateDir);
  fail(first, "a");
  await first.close();
  return stateDir;
}

describe("attempts file", () => {
  test("has when a finding is tried again, for the command line", async () => {
    const stateDir = await afterOneAttempt();
    const again = open(stateDir);
    const outlook = { nextTryAt: "2026-03-01T12:30:00Z", givenUp: true };
    again.book.foresee(new Map([[`${CLASS}/a`, outlook]]));
    await again.close();

    const failures = new Map([[`${CLASS}/a`, { times: 2, lastAt: "2026-03-01T11:59:00Z" }]]);
    const seenAt = (now: string) => withOutlook(failures, stateDir, now).get(`${CLASS}/a`);

    expect(seenAt("2026-03-01T12:00:00Z")).toMatchObject({ times: 2, ...outlook });
    expect(seenAt("2026-03-01T12:31:00Z")).toEqual({ times: 2, lastAt: "2026-03-01T11:59:00Z" });
  });

  test("attempts are known to the next process", async () => {
    const stateDir = await afterOneAttempt();

    const second = open(stateDir);

    expect(attemptsOn(second, "a")).toEqual([
      { atMs: expect.any(Number), outcome: "failed", reason: "busy", subject: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ]);
    expect(second.problems).toEqual([]);
    expect(statSync(join(stateDir, "attempts.json")).mode & 0o077).toBe(0);
  });

  test("an in-flight attempt is known to the next process although this one is killed", async () => {
    const stateDir = join(tempDir(), "state");
    open(stateDir).book.begin([actionOn("a", { id: `${CLASS}/a` })]);

    await until("the attempt is in the file", HANG_MS, () => attemptsOn(open(stateDir), "a").length > 0 || undefined);
    expect(attemptsOn(open(stateDir), "a")).toMatchObject([{ outcome: "interrupted" }]);
  });

  test("is not written while nothing is attempted", async () => {
    const stateDir = await afterOneAttempt();
    const before = statSync(join(stateDir, "attempts.json")).mtimeMs;

    const second = open(stateDir);
    await second.close();

    expect(statSync(join(stateDir, "attempts.json")).mtimeMs).toBe(before);
  });

  test("consecutive heals share one write after the first", async () => {
    const stateDir = join(tempDir(), "state");
    const kept = open(stateDir);
    const file = join(stateDir, "attempts.json");
    const subjects = () => (existsSync(file) ? readFileSync(file, "utf8").match(/"finding"/g)?.length : undefined);
    const written = (count: number) => until(`${count} are written`, HANG_MS, () => subjects() === count || undefined);

    fail(kept, "a");
    await written(1);
    for (const name of ["b", "c", "d"]) fail(kept, name);
    await vi.advanceTimersByTimeAsync(4000);
    expect(subjects()).toBe(1);
    await vi.advanceTimersByTimeAsync(1000);

    await written(4);
    await kept.close();
  });

  test("is bounded and keeps the newest attempts", async () => {
    const stateDir = join(tempDir(), "state");
    const first = open(stateDir);
    fail(first, ...Array.from({ length: 2000 }, (_, index) => `${index}`.padStart(1000, "x")));
    await first.close();

    expect(statSync(join(stateDir, "attempts.json")).size).toBeLessThanOrEqual(256 * 1024);
    const second = open(stateDir);
    expect([...second.book.ledger.keys()]).toEqual([...first.book.ledger.keys()].slice(-second.book.ledger.size));
    expect(second.book.ledger.size).toBeGreaterThan(100);
  });
});

describe("age of an attempt", () => {
  const HOUR_MS = 3_600_000;
  const later = (hours: number): Date => new Date(NOON.getTime() + hours * HOUR_MS);
  const at = (stamp: { boot?: string; uptimeSeconds?: number; hours: number }): Stamp => ({
    at: later(stamp.hours),
    ...(stamp.boot && { boot: { id: stamp.boot, uptimeSeconds: stamp.uptimeSeconds ?? 0 } }),
  });

  test.each([
    ["a minute of the same boot", at({ boot: "first", uptimeSeconds: 1060, hours: 1 / 60 }), 60],
    ["the same boot, clock set forward by years", at({ boot: "first", uptimeSeconds: 1060, hours: 90_000 }), 60],
    ["the same boot, clock set back by years", at({ boot: "first", uptimeSeconds: 1060, hours: -90_000 }), 60],
    ["the same boot with an uptime that went back", at({ boot: "first", uptimeSeconds: 5, hours: 1 }), 0],
    ["another boot, two hours later", at({ boot: "second", uptimeSeconds: 60, hours: 2 }), 7200],
    ["another boot, clock set back by years", at({ boot: "second", uptimeSeconds: 60, hours: -90_000 }), 60],
    ["an unknown boot, clock set back", at({ hours: -1 }), 0],
    ["an unknown boot, an hour later", at({ hours: 1 }), 3600],
  ])("%s", async (_case, now, seconds) => {
    const stateDir = await afterOneAttempt();

    const [attempt] = attemptsOn(open(stateDir, now), "a");

    expect(secondsAgo(attempt)).toBeCloseTo(seconds, -1);
  });

  test("a clock without a battery frees no attempt when it is set right", async () => {
    const stateDir = join(tempDir(), "state");
    const first = open(stateDir, { at: new Date(5000), boot: { id: "first", uptimeSeconds: 5 } });
    fail(first, "a");
    await first.close();

    const [attempt] = attemptsOn(open(stateDir, at({ boot: "second", uptimeSeconds: 60, hours: 0 })), "a");

    expect(secondsAgo(attempt)).toBeCloseTo(60, -1);
  });

  function secondsAgo(attempt: Attempt | undefined): number {
    return (performance.now() - (attempt?.atMs ?? Number.NaN)) / 1000;
  }
});

describe("an invalid attempts file", () => {
  const subjects = (attempts: string): string =>
    `{"apiVersion":"unghost.dev/v1","kind":"Attempts","written":{"at":"2026-03-01T12:00:00Z"},"subjects":[{"finding":"f","class":"c","attempts":${attempts}}]}`;

  test.each([
    ["truncated", '{"apiVersion":"unghost.dev/v1","kind":"Attem'],
    ["empty", ""],
    ["of another format", '{"apiVersion":"unghost.dev/v1","kind":"Timeline","points":[]}'],
    ["of a later version", '{"apiVersion":"unghost.dev/v2","kind":"Attempts"}'],
    ["with an invalid time", subjects("[]").replace("2026-03-01", "2026-99-01")],
    ["with an attempt in the future", subjects('[{"secondsBefore":-5,"outcome":"failed","subject":"s"}]')],
    ["with an unknown outcome", subjects('[{"secondsBefore":5,"outcome":"fine","subject":"s"}]')],
  ])("is reported and replaced: %s", async (_how, text) => {
    const stateDir = fill(tempDir(), { "attempts.json": text });

    const kept = open(stateDir);

    expect([kept.book.ledger.size, kept.problems]).toEqual([0, [expect.stringContaining("retry budgets start again")]]);
    expect(kept.failed).toEqual(["read"]);
  });

  test("is reported and replaced: too large, a directory, a file for a state directory", () => {
    const large = tempDir();
    makeSparse(join(large, "attempts.json"), 2 ** 30);
    const directory = tempDir();
    mkdirSync(join(directory, "attempts.json"));

    expect([large, directory].map((dir) => open(dir).problems)).toEqual([
      [expect.stringContaining("larger than")],
      [expect.stringContaining("is a directory")],
    ]);
  });

  test("is replaced by the next attempt", async () => {
    const stateDir = fill(tempDir(), { "attempts.json": "nonsense" });
    const first = open(stateDir);
    fail(first, "a");
    await first.close();

    expect(attemptsOn(open(stateDir), "a")).toHaveLength(1);
  });
});

test("a directory that cannot be written is reported once, and attempts still count", async () => {
  const stateDir = join(tempDir(), "state");
  writeFileSync(stateDir, "a file");
  const kept = open(stateDir);

  for (let count = 0; count < 3; count++) {
    fail(kept, "a");
    await vi.advanceTimersByTimeAsync(10_000);
  }
  await kept.close();

  expect(kept.problems).toEqual([expect.stringContaining("is not a directory")]);
  expect(kept.failed).toEqual(["write"]);
  expect(attemptsOn(kept, "a")).toHaveLength(3);
});
