import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ClassPolicy } from "../../../src/agent/policy/agent-policy.ts";
import { AttemptBook } from "../../../src/agent/policy/attempts.ts";
import type { Step } from "../../../src/evidence/step.ts";
import { viewOf } from "../../../src/evidence/view.ts";
import type { ActionOutcome } from "../../../src/heal/run-action.ts";
import { AT_ONCE, idOf, recordOf, sandboxOf, snapshotOf } from "../../support/snapshot-builder.ts";
import { actionOn } from "../planned-action.ts";
import { after, ask, decisionOf, NOON, ONE, policyWith } from "./questions.ts";

describe("mode", () => {
  test("heal: runs an action without an objection", () => {
    expect(ask()).toEqual({ decided: [{ action: ONE, decision: { kind: "run" }, attempts: 0 }] });
  });

  test("observe: shows the finding, and why it is not healed", () => {
    const message = "by policy, dead-after-crash is only observed";

    expect(decisionOf({ policy: policyWith({ mode: "observe" }) })).toEqual({
      kind: "observed",
      reason: "policy",
      message,
    });
  });

  test("off: does not show the finding", () => {
    expect(ask({ policy: policyWith({ mode: "off" }) })).toEqual({ decided: [] });
  });
});

describe("a minimum age", () => {
  const policy = policyWith({ minAgeMs: 5000 });

  test("counts from the first sighting", () => {
    expect(decisionOf({ policy, seenMs: 100, ms: 5099 })).toMatchObject({
      kind: "waiting",
      reason: "min-age",
      dueAtMs: 5100,
    });
    expect(decisionOf({ policy, seenMs: 100, ms: 5100 })).toEqual({ kind: "run" });
  });

  test("starts now for a new finding", () => {
    expect(decisionOf({ policy, sightings: [], ms: 7 })).toMatchObject({ reason: "min-age", dueAtMs: 5007 });
  });
});

describe("back-off after an attempt", () => {
  const policy = policyWith({ attempts: 100 });

  test.each([
    ["is the cool-down after a success", [[0, "healed"]], 1000],
    ["is the cool-down after the first failure", [[0, "failed"]], 1000],
    [
      "doubles with each failure",
      [
        [0, "failed"],
        [0, "refused"],
        [0, "failed"],
      ],
      4000,
    ],
    [
      "is reset by a success",
      [
        [0, "failed"],
        [0, "failed"],
        [0, "healed"],
        [0, "failed"],
      ],
      1000,
    ],
    [
      "is not increased by skipped attempts",
      [
        [0, "failed"],
        [0, "skipped"],
        [0, "skipped"],
      ],
      1000,
    ],
    ["is never longer than an hour", Array.from({ length: 30 }, () => [0, "failed"] as const), 3_600_000],
  ] satisfies readonly (readonly [string, readonly (readonly [number, ActionOutcome])[], number])[])(
    "%s",
    (_, attempts, dueAtMs) => {
      const ledger = after(policy, ...attempts);

      expect(decisionOf({ policy, ledger, ms: dueAtMs - 1 })).toMatchObject({
        kind: "waiting",
        reason: "cool-down",
        dueAtMs,
      });
      expect(decisionOf({ policy, ledger, ms: dueAtMs })).toEqual({ kind: "run" });
    },
  );

  test("is at least the cool-down, however long that is", () => {
    const patient = policyWith({ coolDownMs: 7_200_000, attemptsWithinMs: 86_400_000 });

    expect(decisionOf({ policy: patient, ledger: after(patient, [0, "failed"]), ms: 1 })).toMatchObject({
      dueAtMs: 7_200_000,
    });
  });
});

describe("a spent budget", () => {
  const policy = policyWith({});
  const spent = after(policy, [0, "failed"], [1000, "failed"], [3000, "failed"]);

  test("gives up, with the last error and the manual steps", () => {
    const decision = decisionOf({ policy, ledger: spent, ms: 30_000 });

    expect(decision).toMatchObject({
      kind: "given-up",
      message: "3 attempts within 1m did not heal it; the last one: still busy",
      next: expect.stringMatching(/^crictl pods --state NotReady, .*Details: `unghost explain dead-after-crash`\.$/),
    });
  });

  test("distinguishes a finding that is healed and comes back from one that cannot be healed", () => {
    const ledger = after(policy, [0, "healed"], [1000, "healed"], [3000, "healed"]);

    expect(decisionOf({ policy, ledger, ms: 30_000 })).toMatchObject({
      message: expect.stringContaining("came back each time"),
    });
  });

  test("lasts until the oldest attempt leaves the period", () => {
    expect(ask({ policy, ledger: spent, ms: 59_999 }).dueAtMs).toBe(60_000);
    expect(decisionOf({ policy, ledger: spent, ms: 59_999 })?.kind).toBe("given-up");
    expect(decisionOf({ policy, ledger: spent, ms: 60_000 })?.kind).toBe("run");
  });

  test("does not count for another object of the same name, which still keeps the back-off", () => {
    const other = actionOn("a", { cure: [{ kind: "remove-netns", path: "/run/netns/cni-a", inode: 2n }] });

    expect(decisionOf({ actions: [other], policy, ledger: spent, ms: 3001 })).toMatchObject({ reason: "cool-down" });
    expect(decisionOf({ actions: [other], policy, ledger: spent, ms: 30_000 })).toEqual({ kind: "run" });
  });

  test("is not spent by attempts that were skipped before they started", () => {
    const ledger = after(policy, [0, "skipped"], [1, "skipped"], [2, "skipped"], [3, "skipped"]);

    expect(decisionOf({ policy, ledger, ms: 30_000 })).toEqual({ kind: "run" });
  });
});

describe("excluded namespaces", () => {
  const policy = policyWith({}, { ignoredNamespaces: ["default"] });
  const nameless = actionOn("a", { subject: { type: "process", pid: 7, sandboxId: idOf("a") } });
  const leftOut = { kind: "observed", reason: "opted-out", message: "by policy, the namespace default is left out" };

  test("are identified by the pod", () => {
    expect(decisionOf({ policy })).toEqual(leftOut);
  });

  test.each([
    ["the listed sandbox", { sandboxes: [sandboxOf("a")] }],
    ["the record of an unlisted sandbox", { records: [recordOf("a")] }],
    [
      "the labels of an unreadable record",
      { storeRecords: [{ id: idOf("a"), createdAt: NOON, labels: { "io.kubernetes.pod.namespace": "default" } }] },
    ],
  ])("are identified by %s", (_, parts) => {
    const view = viewOf(snapshotOf(parts), AT_ONCE);

    expect(decisionOf({ policy, actions: [nameless], view })).toEqual(leftOut);
  });

  test("are not guessed", () => {
    expect(decisionOf({ policy, actions: [nameless] })).toEqual({ kind: "run" });
  });

  test("have no pod restarted for the sake of another", () => {
    const kick = (namespace: string): Step => ({ kind: "kick-pod", namespace, name: "web", uid: "u", node: "n" });
    const action = { ...actionOn("a", { subject: { type: "node" } }), followUps: [kick("default"), kick("shop")] };

    expect(ask({ policy, actions: [action] }).decided[0]?.action.followUps).toEqual([kick("shop")]);
  });
});

test("outside the maintenance windows an action waits for the next one", () => {
  const window = { days: [], fromMinute: 22 * 60, toMinute: 6 * 60, timeZone: "UTC" };
  const policy = policyWith({}, { maintenanceWindows: [window] });

  expect(decisionOf({ policy, ms: 5 })).toMatchObject({ reason: "maintenance-window", dueAtMs: 5 + 10 * 3_600_000 });
  expect(decisionOf({ policy, wallClock: new Date("2026-03-01T23:00:00Z") })).toEqual({ kind: "run" });
});

test("the longest of several waits is shown, and the earliest of all subjects wakes the loop", () => {
  const policy = policyWith({ minAgeMs: 5000 });
  const ledger = after(policy, [4900, "failed"]);

  const { decided, dueAtMs } = ask({ policy, ledger, actions: [ONE, actionOn("b")], ms: 4950 });

  expect(decided.map(({ decision }) => decision)).toMatchObject([
    { reason: "cool-down", dueAtMs: 5900 },
    { reason: "min-age", dueAtMs: 5000 },
  ]);
  expect(dueAtMs).toBe(5000);
});

test("the cap counts started actions, not given-up ones", () => {
  const policy = policyWith({}, { cap: 1 });
  const ledger = after(policy, [0, "failed"], [1000, "failed"], [3000, "failed"]);

  const { decided } = ask({ policy, ledger, actions: [ONE, actionOn("b"), actionOn("c")], ms: 30_000 });

  expect(decided.map(({ decision }) => decision.kind)).toEqual(["given-up", "run", "waiting"]);
});

describe("invariants", () => {
  const anyPolicy = fc.record({
    mode: fc.constant("heal" as const),
    minAgeMs: fc.integer({ min: 0, max: 5000 }),
    attempts: fc.integer({ min: 1, max: 5 }),
    attemptsWithinMs: fc.integer({ min: 1, max: 20_000 }),
    coolDownMs: fc.integer({ min: 0, max: 2000 }),
  });
  const outcome = fc.constantFrom<ActionOutcome>("healed", "failed", "refused", "skipped");
  const life = fc.array(fc.record({ pauseMs: fc.integer({ min: 0, max: 1500 }), outcome }), { maxLength: 100 });

  interface Run {
    readonly ms: number;
    readonly outcome: ActionOutcome;
  }

  /** Decides at each of these times, and runs whenever it is allowed. */
  function live(
    of: ClassPolicy,
    moments: readonly { readonly pauseMs: number; readonly outcome: ActionOutcome }[],
  ): readonly Run[] {
    const policy = policyWith(of);
    const runs: Run[] = [];
    const book = new AttemptBook();
    let ms = 0;
    for (const { pauseMs, outcome: result } of moments) {
      ms += pauseMs;
      if (decisionOf({ policy, ledger: book.ledger, ms })?.kind !== "run") continue;
      runs.push({ ms, outcome: result });
      book.record([{ action: ONE, outcome: result }], policy, ms);
    }
    return runs;
  }

  test("never start more attempts in any period than the budget has", () => {
    fc.assert(
      fc.property(anyPolicy, life, (of, moments) => {
        const started = live(of, moments).filter((run) => run.outcome !== "skipped");

        for (const { ms } of started) {
          const inPeriod = started.filter((run) => run.ms >= ms && run.ms < ms + of.attemptsWithinMs);
          expect(inPeriod.length).toBeLessThanOrEqual(of.attempts);
        }
      }),
    );
  });

  test("run nothing before its minimum age, nor within the cool-down of the last run", () => {
    fc.assert(
      fc.property(anyPolicy, life, (of, moments) => {
        const runs = live(of, moments);

        expect(runs[0]?.ms ?? of.minAgeMs).toBeGreaterThanOrEqual(of.minAgeMs);
        for (const [index, { ms }] of runs.slice(1).entries()) {
          expect(ms - (runs[index]?.ms ?? 0)).toBeGreaterThanOrEqual(of.coolDownMs);
        }
      }),
    );
  });

  test("a retry at the announced time is decided differently", () => {
    fc.assert(
      fc.property(anyPolicy, life, (of, moments) => {
        const policy = policyWith(of);
        const book = new AttemptBook();
        const { ledger } = book;
        let ms = 0;
        for (const { outcome: result } of moments) {
          const first = ask({ policy, ledger, ms });
          if (first.dueAtMs !== undefined) {
            expect(first.dueAtMs).toBeGreaterThan(ms);
            ms = first.dueAtMs;
            expect(ask({ policy, ledger, ms }).decided[0]?.decision).not.toEqual(first.decided[0]?.decision);
          } else {
            book.record([{ action: ONE, outcome: result }], policy, ms);
          }
        }
      }),
    );
  });
});
