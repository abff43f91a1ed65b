import { readdirSync } from "node:fs";
import { utimes } from "node:fs/promises";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { AgentPolicy } from "../../src/agent/policy/agent-policy.ts";
import { keepQuarantineRetention } from "../../src/agent/quarantine-retention.ts";
import { policyFrom } from "../../src/cli/settings/policy.ts";
import { identifyFile } from "../../src/heal/quarantine/file-identity.ts";
import { quarantineFile } from "../../src/heal/quarantine/quarantine.ts";
import { type HealFixture, makeHealFixture, sessionOf, valueOf, WHY } from "../heal/heal-fixture.ts";

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
  // The fixture's clock is in 2024.
  await putAway("old", new Date("2024-01-31"));
});
afterEach(() => fixture.remove());

async function putAway(name: string, writtenAt: Date, journal = fixture.journal): Promise<void> {
  const { path } = await fixture.put(name, name);
  await utimes(path, writtenAt, writtenAt);
  const expected = valueOf(await identifyFile("/", path));
  await quarantineFile({ ...fixture, journal }, { ...WHY, path, expected });
}

async function inQuarantineAfter(policy: AgentPolicy): Promise<number> {
  const log = pino({ level: "silent" });
  const retention = keepQuarantineRetention({ policy: () => policy, session: sessionOf(fixture.stateDir.root), log });
  await retention.close();
  return readdirSync(fixture.stateDir.quarantine).length;
}

test("the agent deletes quarantine entries older than the retention", async () => {
  expect(await inQuarantineAfter(policyFrom({}))).toBe(0);
});

test("a retention of 0, or a longer one, keeps them", async () => {
  expect(await inQuarantineAfter({ ...policyFrom({}), quarantineRetentionMs: 0 })).toBe(1);
  expect(await inQuarantineAfter({ ...policyFrom({}), quarantineRetentionMs: 1e13 })).toBe(1);
});

test("an agent that only observes deletes nothing", async () => {
  const { classes, ...rest } = policyFrom({});
  const observing = new Map([...classes].map(([id, one]) => [id, { ...one, mode: "observe" as const }]));

  expect(await inQuarantineAfter({ ...rest, classes: observing })).toBe(1);
});

test("keeps an entry with a newer file than its own date, because its clock was in the past", async () => {
  await putAway("written yesterday", new Date(Date.now() - 86_400_000));

  expect(await inQuarantineAfter(policyFrom({}))).toBe(1);
});

test("an entry of this boot is not older than the boot, whatever its date", async () => {
  const { journalIds } = await import("../../src/heal/journal/entry.ts");
  const { openJournal } = await import("../../src/heal/journal/journal.ts");
  const { boot } = sessionOf(fixture.stateDir.root).own;
  const clock = () => new Date("2024-02-01");
  const newId = journalIds(clock, Math.random);
  const journal = valueOf(await openJournal({ stateDir: fixture.stateDir, run: "run-2", boot, clock, newId }));
  await putAway("of this boot", new Date("2024-01-31"), journal);
  await journal.close();

  expect(await inQuarantineAfter({ ...policyFrom({}), quarantineRetentionMs: 1e11 })).toBe(2);
  expect(await inQuarantineAfter(policyFrom({}))).toBe(1);
  // The machine has been up for longer than this.
  expect(await inQuarantineAfter({ ...policyFrom({}), quarantineRetentionMs: 1 })).toBe(0);
});

test("setting the clock forward while the agent runs ages nothing", async () => {
  let now = new Date("2024-02-02");
  let readings = 0;
  const clock = () => {
    readings += 1;
    return now;
  };
  const session = { ...sessionOf(fixture.stateDir.root), clock };
  const log = pino({ level: "silent" });
  const retention = keepQuarantineRetention({ policy: () => policyFrom({}), session, log, everyMs: 1 });
  now = new Date("2034-02-02");
  const before = readings;
  await vi.waitUntil(() => readings > before + 2, { timeout: 60_000 });
  await retention.close();

  expect(readdirSync(fixture.stateDir.quarantine)).toHaveLength(1);
});

test("does not wait for a run that holds the lock", async () => {
  const { openHealSession } = await import("../../src/heal/session.ts");
  const other = await openHealSession(sessionOf(fixture.stateDir.root));
  expect(other.ok).toBe(true);
  try {
    expect(await inQuarantineAfter(policyFrom({}))).toBe(1);
  } finally {
    if (other.ok) await other.value.close();
  }
});
