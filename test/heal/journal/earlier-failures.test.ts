import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { earlierFailures } from "../../../src/heal/journal/earlier-failures.ts";
import { formatEntry, isJournalId, type JournalEntry, type JournalId } from "../../../src/heal/journal/entry.ts";
import { stateDirLayout } from "../../../src/heal/state/state-layout.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { STOP, WHY } from "../heal-fixture.ts";

let dir: ReturnType<typeof tempDir>;
beforeEach(() => {
  dir = tempDir();
});
afterEach(() => dir.remove());

describe("how often healing a finding has failed", () => {
  test("counts runs, with the reason of the last failure", async () => {
    const failures = await failuresOf(
      ...step(1, "run-1", "failed", "DEL failed"),
      ...step(2, "run-1", "failed", "DEL failed"),
      ...step(3, "run-2", "failed", "no answer"),
      ...step(4, "run-3", "healed"),
    );

    expect([...failures]).toEqual([
      [WHY.finding, { times: 2, lastAt: "2024-01-31T10:15:33.000Z", reason: "no answer" }],
    ]);
  });

  test("is nothing without a failure, or without a journal", async () => {
    expect((await failuresOf(...step(1, "run-1", "healed", 'a plugin printed "outcome":"failed"'))).size).toBe(0);
    expect((await earlierFailures(dir.join("elsewhere"), process.getuid?.() ?? 0)).size).toBe(0);
  });
});

async function failuresOf(...entries: readonly JournalEntry[]) {
  const stateDir = dir.join("state");
  const { journal } = stateDirLayout(stateDir);
  mkdirSync(dirname(journal), { recursive: true, mode: 0o700 });
  writeFileSync(journal, entries.map(formatEntry).join(""), { mode: 0o600 });
  return await earlierFailures(stateDir, process.getuid?.() ?? 0);
}

function step(number: number, run: string, outcome: "healed" | "failed", detail = ""): readonly JournalEntry[] {
  const stamp = { id: idOf(number), at: `2024-01-31T10:15:3${number}.000Z`, run, boot: "boot-1" };
  return [
    { event: "begin", ...stamp, ...WHY, action: STOP },
    { event: "done", ...stamp, outcome, detail },
  ];
}

function idOf(number: number): JournalId {
  const text = `aaaaaaaaa-000${number}`;
  if (!isJournalId(text)) throw new Error(text);
  return text;
}
