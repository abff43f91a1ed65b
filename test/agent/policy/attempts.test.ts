import { describe, expect, test } from "vitest";
import { AttemptBook, type Ledger } from "../../../src/agent/policy/attempts.ts";
import { actionOn, CLASS } from "../planned-action.ts";
import { after, decisionOf, ONE, policyWith } from "./questions.ts";

const HOUR_MS = 3_600_000;

describe("an attempt cut short by the end of the agent", () => {
  const policy = policyWith({});

  /** The ledger of a process that was killed at these times, each time during an attempt. */
  function killedAt(...times: readonly number[]): Ledger {
    return times.reduce<Ledger>((ledger, ms) => {
      const book = new AttemptBook(ledger);
      book.begin([ONE]);
      return book.ifEndedNow(ms);
    }, new Map());
  }

  test("counts towards the budget", () => {
    expect(decisionOf({ policy, ledger: killedAt(0, 1, 2), ms: 3 })).toMatchObject({
      kind: "given-up",
      message: "3 attempts within 1m did not heal it; the last one: unghost was ended in the middle of it",
    });
  });

  test("is retried at once while the budget lasts", () => {
    expect(decisionOf({ policy, ledger: killedAt(0, 1), ms: 2 })).toEqual({ kind: "run" });
  });

  test("does not shorten the back-off after a failed attempt", () => {
    const book = new AttemptBook(after(policy, [0, "failed"]));
    book.begin([ONE]);

    expect(decisionOf({ policy, ledger: book.ifEndedNow(500), ms: 501 })).toMatchObject({ dueAtMs: 1000 });
  });

  test("does not exist once the end was recorded", () => {
    const book = new AttemptBook();
    book.begin([ONE]);
    book.record([{ action: ONE, outcome: "healed" }], policy, 10);

    const kept = book.ifEndedNow(20).get(ONE.finding.id)?.attempts;

    expect(kept).toMatchObject([{ outcome: "healed", atMs: 10 }]);
  });
});

describe("the end of a shared cause", () => {
  const policy = policyWith({});
  const DAEMON_DOWN =
    'failed to destroy network for sandbox "a": plugin type="kube-ovn" failed (delete): RPC failed; dial unix /run/openvswitch/kube-ovn-daemon.sock: connect: no such file or directory';

  function failing(reason: string, outcome: "failed" | "skipped" = "failed", times = 1): AttemptBook {
    const book = new AttemptBook();
    for (let ms = 0; ms < times; ms += 1) book.record([{ action: ONE, outcome, reason }], policy, ms);
    return book;
  }

  test.each([
    ["failed because the daemon was away", DAEMON_DOWN, "failed", "run"],
    ["was stopped by the brake", "3 removals in a row failed", "skipped", "run"],
    ["failed for a cause of its own", "the disk is full", "failed", "waiting"],
  ] as const)("what %s", (_, reason, outcome, kind) => {
    const book = failing(reason, outcome);
    expect(decisionOf({ policy, ledger: book.ledger, ms: 10 })?.kind).toBe("waiting");

    book.causeEnded(10);

    expect(decisionOf({ policy, ledger: book.ledger, ms: 10 })?.kind).toBe(kind);
  });

  test("gives a budget back that only the cause used up", () => {
    const book = failing(DAEMON_DOWN, "failed", 3);
    expect(decisionOf({ policy, ledger: book.ledger, ms: 10 })?.kind).toBe("given-up");

    book.causeEnded(10);

    expect(decisionOf({ policy, ledger: book.ledger, ms: 10 })?.kind).toBe("run");
  });

  test("causes one attempt: after another failure the back-off counts again", () => {
    const book = failing(DAEMON_DOWN);
    book.causeEnded(10);

    book.record([{ action: ONE, outcome: "failed", reason: DAEMON_DOWN }], policy, 20);

    expect(decisionOf({ policy, ledger: book.ledger, ms: 30 })?.kind).toBe("waiting");
    // A daemon that comes and goes is not an end of the cause each time.
    book.causeEnded(40);
    expect(decisionOf({ policy, ledger: book.ledger, ms: 40 })?.kind).toBe("waiting");
    book.causeEnded(60_011);
    expect(decisionOf({ policy, ledger: book.ledger, ms: 60_011 })?.kind).toBe("run");
  });
});

describe("pruning of attempts", () => {
  test("drops attempts that no decision depends on any more", () => {
    const policy = policyWith({ attemptsWithinMs: 10 * HOUR_MS });
    const book = new AttemptBook(after(policy, [0, "failed"]));
    const later = (ms: number) => book.record([{ action: actionOn("b"), outcome: "failed" }], policy, ms);

    later(10 * HOUR_MS - 1);
    expect(book.ledger.has(ONE.finding.id)).toBe(true);
    later(10 * HOUR_MS);
    expect([...book.ledger.keys()]).toEqual([actionOn("b").finding.id]);
  });

  test("keeps attempts that a cool-down longer than the period depends on", () => {
    const policy = policyWith({ coolDownMs: 10 * HOUR_MS });
    const book = new AttemptBook(after(policy, [0, "failed"]));

    book.record([{ action: actionOn("b"), outcome: "failed" }], policy, 9 * HOUR_MS);

    expect(decisionOf({ policy, ledger: book.ledger, ms: 9 * HOUR_MS })).toMatchObject({ reason: "cool-down" });
  });

  test("drops the oldest subjects of too many", () => {
    const results = Array.from({ length: 10_001 }, (_, index) => ({
      action: actionOn("a", { id: `${CLASS}/${index}` }),
      outcome: "failed" as const,
    }));

    const book = new AttemptBook();
    book.record(results, policyWith({}), 0);

    expect(book.ledger.size).toBe(2000);
    expect(book.ledger.has(`${CLASS}/0`)).toBe(false);
    expect(book.ledger.has(`${CLASS}/10000`)).toBe(true);
  });

  test("drops the oldest attempts on one subject, and skipped ones once it is tried again", () => {
    const policy = policyWith({ attemptsWithinMs: 100 * HOUR_MS });
    const often = Array.from({ length: 501 }, (_, ms) => [ms, ms % 2 === 0 ? "healed" : "skipped"] as const);

    const attempts = after(policy, ...often).get(ONE.finding.id)?.attempts ?? [];

    expect(attempts.map(({ atMs }) => atMs)).toEqual(Array.from({ length: 100 }, (_, index) => 302 + 2 * index));
  });
});
