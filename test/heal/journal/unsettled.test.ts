import { writeFileSync } from "node:fs";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { formatEntry, isJournalId, type JournalEntry, type JournalId } from "../../../src/heal/journal/entry.ts";
import { readHistory } from "../../../src/heal/journal/history.ts";
import { readUnsettled } from "../../../src/heal/journal/unsettled.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { STOP, WHY } from "../workshop.ts";

const stamp = { at: "2024-01-31T10:15:30.000Z", run: "run-1", boot: "boot-1" };

let dir: ReturnType<typeof tempDir>;

beforeAll(() => {
  dir = tempDir();
});

afterAll(() => {
  dir.remove();
});

function idOf(number: number): JournalId {
  const text = `aaaaaaaaa-000${number}`;
  if (!isJournalId(text)) throw new Error(text);
  return text;
}

const entry: fc.Arbitrary<JournalEntry> = fc
  .record({
    number: fc.integer({ min: 0, max: 4 }),
    event: fc.constantFrom("begin", "done", "undoing", "undone", "recovered"),
  })
  .map(({ number, event }): JournalEntry => {
    const id = idOf(number);
    switch (event) {
      case "begin":
        return { event, id, ...stamp, ...WHY, action: STOP };
      case "done":
        return { event, id, ...stamp, outcome: "healed", detail: 'a brace " } in it' };
      case "recovered":
        return { event, id, ...stamp, how: "interrupted", detail: "" };
      default:
        return { event, id, ...stamp };
    }
  });

test("it gives what the whole history says is not simply ended, wherever the last line was torn", async () => {
  const journal = dir.join("journal");
  await fc.assert(
    fc.asyncProperty(fc.array(entry, { maxLength: 20 }), fc.nat(120), async (entries, cut) => {
      const text = entries.map(formatEntry).join("");
      writeFileSync(journal, text.slice(0, text.length - cut));

      const unsettled = await readUnsettled(journal);

      const { records } = await readHistory(journal);
      expect(unsettled).toEqual(records.filter(({ state }) => state !== "done" && state !== "undone"));
    }),
  );
});

test("a journal that is not there has nothing to settle", async () => {
  expect(await readUnsettled(dir.join("nowhere"))).toEqual([]);
});
