import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runsIn } from "../../src/agent/journal-runs.ts";
import { quarantineFile } from "../../src/heal/quarantine/quarantine.ts";
import { undo } from "../../src/heal/quarantine/undo.ts";
import { type HealFixture, makeHealFixture, STOP, valueOf, WHY } from "../heal/heal-fixture.ts";

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

const POD = { type: "sandbox", pod: { namespace: "shop", name: "web-0" } } as const;

function runs() {
  return runsIn(readFileSync(fixture.stateDir.journal, "utf8").split("\n"));
}

test("one run has one item per finding, in the past tense", async () => {
  const why = { ...WHY, subject: POD };
  const { id = "" } = await quarantineFile(fixture, { ...why, ...(await fixture.put("cache", "{")) });
  await fixture.journal.done(valueOf(await fixture.journal.begin({ ...why, action: STOP })), "healed");
  await fixture.journal.done(
    valueOf(await fixture.journal.begin({ ...why, finding: "other", action: STOP })),
    "failed",
    "deadline exceeded",
  );

  expect(await runs()).toEqual([
    {
      run: "run-1",
      at: expect.any(String),
      seconds: expect.any(Number),
      more: 0,
      items: [
        {
          finding: WHY.finding,
          class: WHY.class,
          subject: "shop/web-0",
          outcome: "done",
          did: ["moved its broken or stale file to quarantine", "stopped the sandbox"],
          undo: [id],
        },
        {
          finding: "other",
          class: WHY.class,
          subject: "shop/web-0",
          outcome: "failed",
          did: [],
          reason: "deadline exceeded",
          undo: [],
        },
      ],
    },
  ]);
});

test("a file that was put back is undone, and an unended action was interrupted", async () => {
  const { id = "" } = await quarantineFile(fixture, { ...WHY, ...(await fixture.put("cache", "{")) });
  await undo(fixture, { id });
  await fixture.journal.begin({ ...WHY, finding: "open", action: STOP });

  const [run] = await runs();
  expect(run?.items.map(({ outcome }) => outcome)).toEqual(["undone", "interrupted"]);
});

test("a truncated first line and invalid lines are left out", async () => {
  expect(await runsIn(['{"event":"be', "", '{"event":"of a newer version","id":"x"}'])).toEqual([]);
});
