import { writeFileSync } from "node:fs";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { formatEntry, isJournalId, type JournalEntry, type JournalId } from "../../../src/heal/journal/entry.ts";
import { MAX_LINE_BYTES, readHistory } from "../../../src/heal/journal/reader.ts";
import { readUnsettled } from "../../../src/heal/journal/unsettled.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { STOP, WHY } from "../heal-fixture.ts";

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
    event: fc.constantFrom("begin", "done", "undoing", "undone", "pruned", "recovered"),
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

test("returns the same open entries as a read of the whole history, wherever the last line was torn", async () => {
  const journal = dir.join("journal");
  await fc.assert(
    fc.asyncProperty(fc.array(entry, { maxLength: 20 }), fc.nat(120), async (entries, cut) => {
      const text = entries.map(formatEntry).join("");
      writeFileSync(journal, text.slice(0, text.length - cut));

      const unsettled = await readUnsettled(journal);

      const { records } = await readHistory(journal);
      expect(unsettled).toEqual(records.filter(({ state }) => !["done", "undone", "pruned"].includes(state)));
    }),
  );
});

test("is empty when the journal does not exist", async () => {
  expect(await readUnsettled(dir.join("nowhere"))).toEqual([]);
});

const begin = (number: number): JournalEntry => ({ event: "begin", id: idOf(number), ...stamp, ...WHY, action: STOP });
const done = (number: number): JournalEntry => ({ event: "done", id: idOf(number), ...stamp, outcome: "healed" });

/** Ids of the unsettled records, and how many lines were parsed completely to find them. */
async function unsettledIn(...lines: readonly (JournalEntry | string)[]) {
  const journal = dir.join("journal");
  writeFileSync(journal, lines.map((line) => (typeof line === "string" ? `${line}\n` : formatEntry(line))).join(""));
  const decode = vi.spyOn(TextDecoder.prototype, "decode");
  try {
    const ids = (await readUnsettled(journal)).map(({ id }) => id);
    return { ids, understood: decode.mock.calls.length };
  } finally {
    decode.mockRestore();
  }
}

test.each<readonly [string, JournalEntry]>([
  ["done", done(1)],
  ["undone", { event: "undone", id: idOf(1), ...stamp }],
  ["pruned", { event: "pruned", id: idOf(1), ...stamp }],
])("does not parse the lines of an entry that is %s, because a journal may have a million of them", async (_, end) => {
  expect(await unsettledIn(begin(1), end, begin(2))).toEqual({ ids: [idOf(2)], understood: 1 });
});

test("parses every line of an entry that was opened again", async () => {
  const undoing: JournalEntry = { event: "undoing", id: idOf(1), ...stamp };
  expect(await unsettledIn(begin(1), done(1), undoing)).toEqual({ ids: [idOf(1)], understood: 3 });
});

test("a line that only contains the text of an end does not close the entry", async () => {
  expect((await unsettledIn(begin(1), `{"x":${formatEntry(done(1)).trim()}}`)).ids).toEqual([idOf(1)]);
});

test("an incomplete end does not close its entry", async () => {
  expect((await unsettledIn(begin(1), formatEntry(done(1)).slice(0, 60))).ids).toEqual([idOf(1)]);
});

test("a line that is too long neither closes nor reopens its entry", async () => {
  const tooLong = formatEntry(done(1)).trim() + " ".repeat(MAX_LINE_BYTES);
  expect((await unsettledIn(begin(1), tooLong)).ids).toEqual([idOf(1)]);
  expect(await unsettledIn(begin(1), done(1), tooLong)).toEqual({ ids: [], understood: 0 });
});
