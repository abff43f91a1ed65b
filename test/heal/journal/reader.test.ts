import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JournalAction } from "../../../src/evidence/step.ts";
import { formatEntry, isJournalId, type JournalEntry, type JournalId } from "../../../src/heal/journal/entry.ts";
import {
  foldHistory,
  interpretLines,
  isUndoable,
  type JournalItem,
  MAX_LINE_BYTES,
} from "../../../src/heal/journal/reader.ts";
import { splitLines } from "../../../src/host/safe-fs.ts";
import { STOP, WHY } from "../heal-fixture.ts";

const stamp = { at: "2024-01-31T10:15:30.000Z", run: "run-1", boot: "boot-1" };
const begin = (id: string): JournalEntry => ({ event: "begin", id: idOf(id), ...stamp, ...WHY, action: STOP });
const done = (id: string): JournalEntry => ({ event: "done", id: idOf(id), ...stamp, outcome: "healed" });

function idOf(text: string): JournalId {
  if (!isJournalId(text)) throw new Error(text);
  return text;
}

async function itemsOf(...chunks: (string | Uint8Array)[]): Promise<readonly JournalItem[]> {
  const bytes = chunks.map((chunk) => (typeof chunk === "string" ? Buffer.from(chunk) : chunk));
  const items: JournalItem[] = [];
  for await (const item of interpretLines("journal", splitLines(bytes, MAX_LINE_BYTES))) items.push(item);
  return items;
}

const FIRST = begin("aaaaaaaaa-0001");
const SECOND = done("aaaaaaaaa-0001");
const WHOLE = formatEntry(FIRST) + formatEntry(SECOND);

describe("reading the journal", () => {
  test("returns what was written", async () => {
    expect(await itemsOf(WHOLE)).toEqual([
      { type: "entry", entry: FIRST },
      { type: "entry", entry: SECOND },
    ]);
  });

  test("skips a last line torn at any byte, without a warning", async () => {
    const last = Buffer.from(formatEntry(SECOND));
    for (let cut = 0; cut < last.length - 1; cut++) {
      expect(await itemsOf(formatEntry(FIRST), last.subarray(0, cut))).toEqual([{ type: "entry", entry: FIRST }]);
    }
  });

  test("accepts a last line that only lacks its newline", async () => {
    expect(await itemsOf(WHOLE.slice(0, -1))).toHaveLength(2);
  });

  test("skips a tail of zero bytes, as some file systems leave after a power cut", async () => {
    expect(await itemsOf(formatEntry(FIRST), Buffer.alloc(5000))).toEqual([{ type: "entry", entry: FIRST }]);
  });

  test("skips a torn line that is followed by `resumed`", async () => {
    const resumed = formatEntry({ event: "resumed", ...stamp });

    const items = await itemsOf(`{"event":"beg\n${resumed}${WHOLE}`);

    expect(items.map(({ type }) => type)).toEqual(["entry", "entry"]);
  });

  test.each([
    ["half an object", '{"event":'],
    ["not an object", "42"],
    ["an event of a newer version", '{"event":"painted","id":"aaaaaaaaa-0001"}'],
    ["an action of a newer version", formatEntry(FIRST).replace("stop-sandbox", "paint-sandbox").trim()],
    ["an id that is a path", formatEntry(SECOND).replace("aaaaaaaaa-0001", "../../../etc").trim()],
    ["bytes that are not UTF-8", Buffer.from([0x7b, 0xff, 0xfe, 0x7d])],
    ["far too long", "x".repeat(MAX_LINE_BYTES + 1)],
  ])("reports a damaged line in the middle with its number: %s", async (_name, line) => {
    const items = await itemsOf(formatEntry(FIRST), line, "\n", formatEntry(SECOND));

    expect(items.map(({ type }) => type)).toEqual(["entry", "problem", "entry"]);
    expect(items[1]).toMatchObject({ problem: { file: "journal", line: 2 } });
  });

  test("gives the same result for any chunk sizes, and never throws", async () => {
    const piece = fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.constantFrom(WHOLE, formatEntry(FIRST), "\n", "{", '{"event":"done"}').map((text) => Buffer.from(text)),
      fc.json().map((text) => Buffer.from(text)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 12 }), fc.integer({ min: 1, max: 50 }), async (pieces, size) => {
        const bytes = Buffer.concat(pieces);
        const chunks: Uint8Array[] = [];
        for (let start = 0; start < bytes.length; start += size) chunks.push(bytes.subarray(start, start + size));

        const items = await itemsOf(...chunks);

        expect(items).toEqual(await itemsOf(bytes));
        await foldHistory(items);
      }),
      { numRuns: 500 },
    );
  });
});

describe("foldHistory", () => {
  const at = { ...stamp, at: "2024-01-31T11:00:00.000Z" };
  const id = idOf("aaaaaaaaa-0001");
  const cases: readonly (readonly [string, readonly JournalEntry[], object])[] = [
    ["open", [], { state: "open" }],
    ["done", [SECOND], { state: "done", outcome: "healed" }],
    ["undoing", [SECOND, { event: "undoing", id, ...at }], { state: "undoing" }],
    ["undone", [SECOND, { event: "undoing", id, ...at }, { event: "undone", id, ...at }], { state: "undone" }],
    ["pruned", [SECOND, { event: "pruned", id, ...at }], { state: "pruned", outcome: "healed" }],
    [
      "completed",
      [{ event: "recovered", id, ...at, how: "completed", detail: "d" }],
      { state: "done", outcome: "healed", detail: "d" },
    ],
    ["lost", [{ event: "recovered", id, ...at, how: "lost", detail: "d" }], { state: "lost", endedAt: at.at }],
  ];

  test.each(cases)("%s", async (_name, entries, expected) => {
    const items = [FIRST, ...entries].map((entry) => ({ type: "entry", entry }) as const);

    expect((await foldHistory(items)).records).toMatchObject([{ id, class: WHY.class, ...expected }]);
    // As after an interrupted rotation.
    expect((await foldHistory([...items, ...items])).records).toMatchObject([{ id, ...expected }]);
  });

  test("a repeated beginning does not reopen an entry", async () => {
    const items = [FIRST, SECOND, FIRST].map((entry) => ({ type: "entry", entry }) as const);
    expect((await foldHistory(items)).records).toMatchObject([{ state: "done" }]);
  });

  test("an end without a detail keeps the detail of an earlier end", async () => {
    const recovered: JournalEntry = { event: "recovered", id, ...at, how: "completed", detail: "d" };
    const items = [FIRST, recovered, SECOND].map((entry) => ({ type: "entry", entry }) as const);
    expect((await foldHistory(items)).records).toMatchObject([{ state: "done", detail: "d" }]);
  });

  test("an end whose beginning was rotated away makes no record", async () => {
    expect((await foldHistory([{ type: "entry", entry: SECOND }])).records).toEqual([]);
  });
});

describe("isUndoable", () => {
  const before = { dev: 1n, inode: 1n, size: 1n, mtimeNs: 1n, atimeNs: 1n, mode: 0, uid: 0, gid: 0 };
  const MOVE = { kind: "quarantine-file", path: "/x", before: { ...before, sha256: "0".repeat(64) } } as const;

  async function recordOf(action: JournalAction, ...entries: readonly JournalEntry[]) {
    const items = [{ ...begin("aaaaaaaaa-0001"), action } as JournalEntry, ...entries];
    const [record] = (await foldHistory(items.map((entry) => ({ type: "entry", entry })))).records;
    if (record === undefined) throw new Error("no record");
    return record;
  }

  test("returns true only for a file in quarantine that was neither put back nor deleted", async () => {
    const id = idOf("aaaaaaaaa-0001");
    const failed: JournalEntry = { event: "done", id, ...stamp, outcome: "failed" };
    expect(isUndoable(await recordOf(MOVE, SECOND))).toBe(true);
    expect(isUndoable(await recordOf(MOVE))).toBe(false);
    expect(isUndoable(await recordOf(MOVE, failed))).toBe(false);
    expect(isUndoable(await recordOf(STOP, SECOND))).toBe(false);
    for (const event of ["undoing", "undone", "pruned"] as const) {
      expect(isUndoable(await recordOf(MOVE, SECOND, { event, id, ...stamp }))).toBe(false);
    }
  });
});
