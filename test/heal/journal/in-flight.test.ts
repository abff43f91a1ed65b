import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findLiveRun, sandboxesUnderWay } from "../../../src/heal/journal/in-flight.ts";
import { acquireRunLock, ownIdentity } from "../../../src/heal/state/run-lock.ts";
import { type HealFixture, makeHealFixture, valueOf } from "../heal-fixture.ts";

const own = ownIdentity();
const uid = process.getuid?.() ?? 0;
/** Above the kernel's maximum. */
const FREE_PID = 2 ** 22 + 1;
/** The run id of the fixture's journal. */
const RUN = "run-1";
let fixture: HealFixture;

beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

function find() {
  return findLiveRun(fixture.stateDir.root, uid, own);
}

function lockAs(run: string) {
  return acquireRunLock({ path: fixture.stateDir.lock, own, run, waitMs: 0 });
}

describe("findLiveRun", () => {
  test("returns the run that holds the lock, until it releases it", async () => {
    expect(await find()).toBeUndefined();
    const lock = valueOf(await lockAs(RUN));

    expect(await find()).toEqual({ run: RUN, pid: process.pid, journal: fixture.stateDir.journal });
    lock.release();
    expect(await find()).toBeUndefined();
  });

  test("ignores a killed run in the lock file, even when its pid is in use", async () => {
    writeFileSync(fixture.stateDir.lock, JSON.stringify({ ...own, run: RUN }));

    expect(await find()).toBeUndefined();
  });

  test("ignores a killed run that the file still names while the next run holds the lock", async () => {
    const lock = valueOf(await lockAs("run-2"));
    writeFileSync(fixture.stateDir.lock, JSON.stringify({ ...own, pid: FREE_PID, run: RUN }));

    expect(await find()).toBeUndefined();
    lock.release();
  });
});

describe("sandboxesUnderWay", () => {
  const [inFlight, betweenSteps, failed] = ["a", "b", "c"].map((letter) => letter.repeat(64));

  async function begin(sandboxId = "") {
    const why = { finding: `cause/${sandboxId}`, class: "cause", subject: { type: "sandbox", sandboxId } };
    return valueOf(await fixture.journal.begin({ ...why, action: { kind: "stop-sandbox", sandboxId } }));
  }

  function underWay(run: string) {
    return sandboxesUnderWay({ run, pid: 1, journal: fixture.stateDir.journal });
  }

  test("returns sandboxes with a step in flight or done, and none whose last step failed", async () => {
    await begin(inFlight);
    await fixture.journal.done(await begin(betweenSteps), "healed");
    await fixture.journal.done(await begin(failed), "healed");
    await fixture.journal.done(await begin(failed), "failed");

    const treated = await underWay(RUN);

    expect([...treated.keys()]).toEqual([inFlight, betweenSteps]);
    expect(treated.get(inFlight ?? "")).toMatchObject({ finding: `cause/${inFlight}`, class: "cause", pid: 1 });
  });

  test("returns none of another run", async () => {
    await begin(inFlight);

    expect(await underWay("run-2")).toEqual(new Map());
  });
});
