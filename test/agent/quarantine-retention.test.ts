import { readdirSync } from "node:fs";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { AgentPolicy } from "../../src/agent/policy/agent-policy.ts";
import { defaultAgentPolicy } from "../../src/agent/policy/default-policy.ts";
import { keepQuarantineRetention } from "../../src/agent/quarantine-retention.ts";
import { quarantineFile } from "../../src/heal/quarantine/quarantine.ts";
import { makeWorkshop, sessionOf, WHY, type Workshop } from "../heal/workshop.ts";

let shop: Workshop;
beforeEach(async () => {
  shop = await makeWorkshop();
  // The workshop's clock is in 2024.
  await quarantineFile(shop, { ...WHY, ...(await shop.put("old", "old")) });
});
afterEach(() => shop.remove());

async function inQuarantineAfter(policy: AgentPolicy): Promise<number> {
  const log = pino({ level: "silent" });
  const retention = keepQuarantineRetention({ policy: () => policy, session: sessionOf(shop.stateDir.root), log });
  await retention.close();
  return readdirSync(shop.stateDir.quarantine).length;
}

test("the agent deletes what is older than the retention", async () => {
  expect(await inQuarantineAfter(defaultAgentPolicy())).toBe(0);
});

test("0 keeps it forever, and so does a longer retention", async () => {
  expect(await inQuarantineAfter({ ...defaultAgentPolicy(), quarantineRetentionMs: 0 })).toBe(1);
  expect(await inQuarantineAfter({ ...defaultAgentPolicy(), quarantineRetentionMs: 1e13 })).toBe(1);
});

test("an agent that only observes deletes nothing", async () => {
  const { classes, ...rest } = defaultAgentPolicy();
  const observing = new Map([...classes].map(([id, one]) => [id, { ...one, mode: "observe" as const }]));

  expect(await inQuarantineAfter({ ...rest, classes: observing })).toBe(1);
});

test("a run that holds the lock is not waited for", async () => {
  const { openHealSession } = await import("../../src/heal/execution/session.ts");
  const other = await openHealSession(sessionOf(shop.stateDir.root));
  expect(other.ok).toBe(true);
  try {
    expect(await inQuarantineAfter(defaultAgentPolicy())).toBe(1);
  } finally {
    if (other.ok) await other.value.close();
  }
});
