import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import { openHealSession } from "../../src/heal/execution/session.ts";
import { type PipelineOptions, type Planned, runPipeline, type Scanned } from "../../src/heal/pipeline.ts";
import { planHealing } from "../../src/plan/plan.ts";
import { DEFAULT_CAP } from "../../src/plan/policy.ts";
import { AT_ONCE, snapshotOf } from "../support/snapshot-builder.ts";
import { STOP, sessionOf, valueOf, WHY } from "./heal-fixture.ts";

const POLICY = { ...AT_ONCE, allDead: false, unfinished: new Set<string>(), cap: DEFAULT_CAP };

let stateDir: string;
beforeEach(() => {
  stateDir = join(mkdtempSync(join(tmpdir(), "unghost-pipeline-")), "state");
});
afterEach(() => rmSync(join(stateDir, ".."), { recursive: true, force: true }));

function scanned(): Scanned {
  const snapshot = snapshotOf({});
  return { snapshot, diagnosis: diagnose(snapshot, AT_ONCE) };
}

function planned(): Planned {
  const scan = scanned();
  return { ...scan, plan: planHealing(scan.diagnosis, POLICY) };
}

/** Runs an empty plan and returns what was executed instead, and what was scanned. */
async function run(shown: Planned, changed: Partial<PipelineOptions> = {}) {
  const started: Planned[] = [];
  const scans: Scanned[] = [];
  const result = await runPipeline(shown, {
    scan: () => {
      const scan = scanned();
      scans.push(scan);
      return Promise.resolve(scan);
    },
    plan: (diagnosis) => planHealing(diagnosis, POLICY),
    session: sessionOf(stateDir),
    concurrency: 1,
    cniCacheDir: "/nowhere",
    onBegin: (plan) => started.push(plan),
    onResult: () => undefined,
    onWarning: () => undefined,
    ...changed,
  });
  return { result, started, scans };
}

describe("runPipeline", () => {
  test("scans and plans again after it waited for another run's lock", async () => {
    const other = valueOf(await openHealSession(sessionOf(stateDir)));
    const shown = planned();
    const running = run(shown, { session: { ...sessionOf(stateDir), lockWaitMs: 30_000 } });
    await sleep(400);
    await other.close();
    const { started, scans } = await running;
    expect(started).toHaveLength(1);
    expect(started[0]).not.toBe(shown);
    expect(started[0]?.snapshot).toBe(scans[0]?.snapshot);
  });

  test("scans and plans again after it closed journal entries of an earlier run", async () => {
    const other = valueOf(await openHealSession(sessionOf(stateDir)));
    await other.journal.begin({ ...WHY, action: STOP });
    await other.close();
    const shown = planned();
    const { started } = await run(shown);
    expect(started[0]).not.toBe(shown);
  });

  test("changes nothing when another run holds the lock and waiting is off", async () => {
    const other = valueOf(await openHealSession(sessionOf(stateDir)));
    const { result, started } = await run(planned(), { session: { ...sessionOf(stateDir), lockWaitMs: 0 } });
    await other.close();
    expect(result).toMatchObject({ ok: false, refusal: { kind: "lock" } });
    expect(started).toEqual([]);
  });
});
