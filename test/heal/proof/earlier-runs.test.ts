import { existsSync, readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readHistory } from "../../../src/heal/journal/reader.ts";
import { openHealSession, settleEarlierRuns } from "../../../src/heal/session.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { STOP, sessionOf, valueOf, WHY } from "../heal-fixture.ts";

let dir: ReturnType<typeof tempDir>;
let stateDir: string;
beforeEach(() => {
  dir = tempDir();
  stateDir = dir.join("state");
});
afterEach(() => dir.remove());

/** A run that starts an action; `ended` is whether it journals its end. */
async function earlierRun({ ended }: { readonly ended: boolean }): Promise<void> {
  const session = valueOf(await openHealSession(sessionOf(stateDir)));
  const id = valueOf(await session.journal.begin({ ...WHY, action: STOP }));
  if (ended) session.journal.ended(id, "healed");
  await session.close();
}

test("closes the open entries of an earlier run, and the next run finds none", async () => {
  await earlierRun({ ended: false });

  const settled = valueOf(await settleEarlierRuns(sessionOf(stateDir)));

  expect(settled).toMatchObject([{ kind: "stop-sandbox", how: "interrupted" }]);
  expect((await readHistory(dir.join("state/journal"))).records).toMatchObject([{ state: "interrupted" }]);
  expect(valueOf(await settleEarlierRuns(sessionOf(stateDir)))).toEqual([]);
});

test("writes nothing when every action has ended", async () => {
  await earlierRun({ ended: true });
  const before = readFileSync(dir.join("state/journal"), "utf8");

  expect(valueOf(await settleEarlierRuns(sessionOf(stateDir)))).toEqual([]);
  expect(readFileSync(dir.join("state/journal"), "utf8")).toBe(before);
});

test("does not wait for the lock when no entry is open", async () => {
  await earlierRun({ ended: true });
  const session = valueOf(await openHealSession(sessionOf(stateDir)));

  expect(valueOf(await settleEarlierRuns(sessionOf(stateDir)))).toEqual([]);
  await session.close();
});

test("refuses while another run holds the lock, and closes no entry", async () => {
  const session = valueOf(await openHealSession(sessionOf(stateDir)));
  valueOf(await session.journal.begin({ ...WHY, action: STOP }));

  expect((await settleEarlierRuns(sessionOf(stateDir))).ok).toBe(false);
  expect((await readHistory(dir.join("state/journal"))).records).toMatchObject([{ state: "open" }]);
  await session.close();
});

test("does not create a missing state directory", async () => {
  expect(valueOf(await settleEarlierRuns(sessionOf(stateDir)))).toEqual([]);
  expect(existsSync(stateDir)).toBe(false);
});

test("does not touch a state directory that another user owns", async () => {
  await earlierRun({ ended: false });

  expect(valueOf(await settleEarlierRuns({ ...sessionOf(stateDir), uid: 12_345 }))).toEqual([]);
  expect((await readHistory(dir.join("state/journal"))).records).toMatchObject([{ state: "open" }]);
});
