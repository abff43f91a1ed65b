import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { JournalAction } from "../../../src/evidence/step.ts";
import { formatEntry, isJournalId, type JournalEntry, type JournalId } from "../../../src/heal/journal/entry.ts";
import { unfinishedRemovals } from "../../../src/heal/journal/unsettled.ts";
import { stateDirLayout } from "../../../src/heal/state/state-layout.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { STOP, WHY } from "../heal-fixture.ts";

const STAMP = { at: "2024-01-31T10:15:30.000Z", run: "run-1", boot: "boot-1" };
const SANDBOX = "a".repeat(64);
const REMOVE: JournalAction = { kind: "remove-sandbox", sandboxId: SANDBOX };
const ID = idOf("aaaaaaaaa-0001");

let dir: ReturnType<typeof tempDir>;
beforeEach(() => {
  dir = tempDir();
});
afterEach(() => dir.remove());

function idOf(text: string): JournalId {
  if (!isJournalId(text)) throw new Error(text);
  return text;
}

async function unfinished(...entries: readonly JournalEntry[]): Promise<readonly string[]> {
  const stateDir = join(dir.join("."), "state");
  const { journal } = stateDirLayout(stateDir);
  mkdirSync(dirname(journal), { recursive: true, mode: 0o700 });
  writeFileSync(journal, entries.map(formatEntry).join(""), { mode: 0o600 });
  return [...(await unfinishedRemovals(stateDir, process.getuid?.() ?? 0))];
}

const begin = (action: JournalAction): JournalEntry => ({ event: "begin", id: ID, ...STAMP, ...WHY, action });

describe("unfinishedRemovals", () => {
  test("lists a removal that was started and never ended", async () => {
    expect(await unfinished(begin(REMOVE))).toEqual([SANDBOX]);
  });

  test("lists a removal that a later run found interrupted", async () => {
    const recovered: JournalEntry = { event: "recovered", id: ID, ...STAMP, how: "interrupted", detail: "" };
    expect(await unfinished(begin(REMOVE), recovered)).toEqual([SANDBOX]);
  });

  test.each(["healed", "failed"] as const)("leaves out a removal that ended as %s", async (outcome) => {
    expect(await unfinished(begin(REMOVE), { event: "done", id: ID, ...STAMP, outcome, detail: "" })).toEqual([]);
  });

  test.each(["rolled-back", "lost"] as const)("leaves out a removal that a later run found %s", async (how) => {
    expect(await unfinished(begin(REMOVE), { event: "recovered", id: ID, ...STAMP, how, detail: "" })).toEqual([]);
  });

  test("leaves out other actions that were started and never ended", async () => {
    expect(await unfinished(begin(STOP))).toEqual([]);
  });

  test("is empty without a state directory, and when another user owns it", async () => {
    const none = join(dir.join("."), "none");
    expect([...(await unfinishedRemovals(none, process.getuid?.() ?? 0))]).toEqual([]);
    await unfinished(begin(REMOVE));
    expect([...(await unfinishedRemovals(join(dir.join("."), "state"), 12_345))]).toEqual([]);
  });
});
