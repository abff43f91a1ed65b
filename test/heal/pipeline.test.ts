import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type RunOptions, run } from "../../src/heal/pipeline.ts";
import { openHealSession } from "../../src/heal/session.ts";
import type { Plan } from "../../src/plan/plan.ts";
import { DEFAULT_CAP } from "../../src/plan/policy.ts";
import { type Planned, scanNode } from "../../src/plan/scan.ts";
import {
  AT_ONCE,
  containerOf,
  LOST,
  type NodeParts,
  recordOf,
  sandboxOf,
  snapshotOf,
} from "../support/snapshot-builder.ts";
import { STOP, sessionOf, valueOf, WHY } from "./heal-fixture.ts";

const POLICY = { ...AT_ONCE, allDead: false, unfinished: new Set<string>(), cap: DEFAULT_CAP };
const GHOST: NodeParts = {
  sandboxes: [sandboxOf("a", { createdSecondsAgo: 7200 })],
  containers: [containerOf("a", { exit: LOST })],
  records: [recordOf("a")],
};

let stateDir: string;
let plans = 0;
beforeEach(() => {
  stateDir = join(mkdtempSync(join(tmpdir(), "unghost-pipeline-")), "state");
  plans = 0;
});
afterEach(() => rmSync(join(stateDir, ".."), { recursive: true, force: true }));

function pipelineOn(node: NodeParts): Pick<RunOptions, "observe" | "policy"> {
  return {
    observe: () => Promise.resolve(snapshotOf(node)),
    policy: () => {
      plans++;
      return POLICY;
    },
  };
}

const planned = (node: NodeParts = {}): Promise<Planned> => scanNode(pipelineOn(node));

/** A run that waits long for its session scans again, which a busy machine would make any run do. */
async function atOnce<T>(work: () => Promise<T>): Promise<T> {
  const clock = vi.spyOn(performance, "now").mockReturnValue(performance.now());
  return await work().finally(() => clock.mockRestore());
}

/** Heals a node whose runtime does not answer, and returns what was executed and scanned. */
async function runOn(shown: Planned, changed: Partial<RunOptions> = {}) {
  const started: Plan[] = [];
  const scans: Planned[] = [];
  const result = await run(shown, {
    ...pipelineOn({}),
    session: sessionOf(stateDir),
    concurrency: 1,
    cniCacheDir: "/nowhere",
    sinks: {
      begin: (plan) => started.push(plan),
      result: () => undefined,
      scanned: (scan) => scans.push(scan),
      warning: () => undefined,
    },
    ...changed,
  });
  return { result, started, scans };
}

describe("run", () => {
  test("scans and plans again after it waited for another run's lock", async () => {
    const other = valueOf(await openHealSession(sessionOf(stateDir)));
    const shown = await planned();
    const running = runOn(shown, { session: { ...sessionOf(stateDir), lockWaitMs: 30_000 } });
    await sleep(400);
    await other.close();
    const { started, scans } = await running;
    expect(started).toHaveLength(1);
    expect(started[0]).toBe(scans[0]?.plan);
    expect(scans).toHaveLength(2);
  });

  test("scans and plans again after it closed journal entries of an earlier run", async () => {
    const other = valueOf(await openHealSession(sessionOf(stateDir)));
    await other.journal.begin({ ...WHY, action: STOP });
    await other.close();
    const shown = await planned();
    const { started, scans } = await runOn(shown);
    expect(started[0]).toBe(scans[0]?.plan);
    expect(scans).toHaveLength(2);
  });

  test("changes nothing when another run holds the lock and waiting is off", async () => {
    const other = valueOf(await openHealSession(sessionOf(stateDir)));
    const { result, started } = await runOn(await planned(), { session: { ...sessionOf(stateDir), lockWaitMs: 0 } });
    await other.close();
    expect(result).toMatchObject({ ok: false, refusal: { kind: "lock" } });
    expect(started).toEqual([]);
  });

  test("plans once before the heal and once for the scan that verifies it, and reports that plan", async () => {
    const shown = await planned(GHOST);
    const { result, scans } = await atOnce(() => runOn(shown, pipelineOn(GHOST)));
    expect(shown.plan.actions).toHaveLength(1);
    expect(plans).toBe(2);
    expect(valueOf(result).plan).toBe(scans[0]?.plan);
  });

  test("executes only what the caller lets run", async () => {
    const { result, started } = await runOn(await planned(GHOST), {
      ...pipelineOn(GHOST),
      narrow: ({ plan }) => ({ ...plan, actions: [] }),
    });
    expect(started.map(({ actions }) => actions)).toEqual([[]]);
    expect(valueOf(result).results).toEqual([]);
    expect(valueOf(result).plan.actions).toHaveLength(1);
  });

  test("keeps a finding that it failed to heal, in verdict and plan, when the next scan does not show it", async () => {
    const listed: NodeParts = { sandboxes: [sandboxOf("a", { createdSecondsAgo: 7200 })] };
    const later = { ...POLICY, skip: ["dead-after-crash"] };
    const shown = await planned(GHOST);
    const { result } = await atOnce(() => runOn(shown, { ...pipelineOn(listed), policy: () => later }));
    const { diagnosis, plan, results } = valueOf(result);
    expect(results.map(({ outcome }) => outcome)).toEqual(["failed"]);
    expect(diagnosis.verdict).toBe("ghosts");
    expect([...plan.actions, ...plan.leftAlone].map(({ finding }) => finding.class)).toEqual(["dead-after-crash"]);
  });
});
