import { execFileSync } from "node:child_process";
import { appendFileSync, linkSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { formatEntry, isJournalId, type JournalEntry, type JournalId } from "../../../src/heal/journal/entry.ts";
import { type JournalItem, journalNumber, MAX_LINE_BYTES, readJournal } from "../../../src/heal/journal/reader.ts";
import { heldOpenBelow } from "../../support/held-open.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { STOP, WHY } from "../heal-fixture.ts";

const stamp = { at: "2024-01-31T10:15:30.000Z", run: "run-1", boot: "boot-1" };

let dir: ReturnType<typeof tempDir>;
let journal: string;
beforeEach(() => {
  dir = tempDir();
  journal = dir.join("journal");
});
afterEach(() => dir.remove());

function idOf(number: number): JournalId {
  const text = `aaaaaaaaa-000${number}`;
  if (!isJournalId(text)) throw new Error(text);
  return text;
}

function begin(number: number): JournalEntry {
  return { event: "begin", id: idOf(number), ...stamp, ...WHY, action: STOP };
}

function write(suffix: string, ...numbers: readonly number[]): void {
  writeFileSync(`${journal}${suffix}`, numbers.map((number) => formatEntry(begin(number))).join(""));
}

async function read(): Promise<readonly JournalItem[]> {
  const items: JournalItem[] = [];
  for await (const item of readJournal(journal)) items.push(item);
  return items;
}

/** Ids of entries in the order in which they are read; problems by their file and code. */
async function readInOrder(): Promise<readonly string[]> {
  return (await read()).map((item) => {
    if (item.type === "problem") return `${item.problem.file.slice(journal.length)} ${item.problem.code}`;
    return item.entry.event === "resumed" ? "resumed" : item.entry.id;
  });
}

function heldOpen(): readonly string[] {
  return heldOpenBelow(journal);
}

describe("readJournal", () => {
  test("reads rotated files before the current one, the highest number first", async () => {
    write("", 1);
    write(".1", 2);
    write(".2", 3);
    expect(await readInOrder()).toEqual([idOf(3), idOf(2), idOf(1)]);
  });

  test("tolerates missing numbers, including a missing current file", async () => {
    write(".3", 3);
    write(".10", 4);
    expect(await readInOrder()).toEqual([idOf(4), idOf(3)]);
  });

  test("ignores files that are not part of the journal", async () => {
    write("", 1);
    for (const other of [".0", ".01", ".10000", ".merging", ".1.bak", "-1", ".", "1"]) write(other, 2);
    writeFileSync(dir.join("other.1"), formatEntry(begin(3)));
    expect(await readInOrder()).toEqual([idOf(1)]);
  });

  test("reads a file once when a rotation shows it under two names", async () => {
    write("", 1);
    linkSync(journal, `${journal}.1`);
    expect(await readInOrder()).toEqual([idOf(1)]);
  });

  test("reports files that are not regular, follows no link, does not block on a FIFO, and reads the rest", async () => {
    write("", 1);
    mkdirSync(`${journal}.1`);
    execFileSync("mkfifo", [`${journal}.2`]);
    writeFileSync(dir.join("elsewhere"), formatEntry(begin(2)));
    symlinkSync(dir.join("elsewhere"), `${journal}.3`);

    const items = await read();

    const problems = items.flatMap((item) => (item.type === "problem" ? [item.problem] : []));
    expect(problems).toEqual([
      { file: `${journal}.1`, code: "unreadable-file", reason: "not a regular file" },
      { file: `${journal}.2`, code: "unreadable-file", reason: "not a regular file" },
      { file: `${journal}.3`, code: "unreadable-file", reason: expect.stringContaining("ELOOP") as unknown },
    ]);
    expect(items.at(-1)).toEqual({ type: "entry", entry: begin(1) });
    expect(heldOpen()).toEqual([]);
  });

  test("is empty when the journal or its directory does not exist", async () => {
    expect(await readInOrder()).toEqual([]);
    journal = dir.join("nowhere/journal");
    expect(await readInOrder()).toEqual([]);
  });

  test("throws when the directory cannot be listed, because an unread journal is not an empty one", async () => {
    symlinkSync(dir.join("loop"), dir.join("loop"));
    journal = dir.join("loop/journal");
    await expect(read()).rejects.toThrow("ELOOP");
  });

  test("closes its files, even when the reader stops early", async () => {
    write("", 1, 2);
    write(".1", 3);
    const reading = readJournal(journal);
    await reading.next();
    await reading.return(undefined);
    expect(heldOpen()).toEqual([]);
    await read();
    expect(heldOpen()).toEqual([]);
  });

  test("reads a file longer than one read to its end, with lines appended meanwhile", async () => {
    const numbers = Array.from({ length: 900 }, (_, index) => index % 10);
    write("", ...numbers);
    let count = 0;
    for await (const { type } of readJournal(journal)) {
      if (count === 0) appendFileSync(journal, formatEntry(begin(9)));
      count += type === "entry" ? 1 : 0;
    }
    expect(count).toBe(901);
  });

  test("continues to read a file that is rotated meanwhile", async () => {
    write("", 1, 2);
    const seen: string[] = [];
    for await (const item of readJournal(journal)) {
      if (seen.length === 0) renameSync(journal, `${journal}.1`);
      if (item.type === "entry" && item.entry.event === "begin") seen.push(item.entry.id);
    }
    expect(seen).toEqual([idOf(1), idOf(2)]);
  });

  test("misses no file that is rotated while the files are opened", async () => {
    write("", 1);
    write(".1", 2);
    const reading = readInOrder();
    // The current file is open by now, and the next one not yet.
    while (!heldOpen().includes(journal)) await setImmediate();
    renameSync(`${journal}.1`, `${journal}.2`);
    renameSync(journal, `${journal}.1`);
    expect(await reading).toEqual([idOf(2), idOf(1)]);
  });

  test("reports a line that is too long for an entry, and skips empty lines", async () => {
    writeFileSync(journal, `\n\n${"x".repeat(MAX_LINE_BYTES + 1)}\n\n${formatEntry(begin(1))}`);
    expect(await read()).toEqual([
      { type: "problem", problem: { file: journal, line: 3, code: "damaged", reason: "too long" } },
      { type: "entry", entry: begin(1) },
    ]);
  });

  test("accepts entries of the maximum length", () => {
    expect(MAX_LINE_BYTES).toBe(262_144);
  });

  test("reports a damaged last line that ends with a newline, and each of several", async () => {
    writeFileSync(journal, `damage\n${formatEntry(begin(1))}damage\ndamage\n`);
    expect((await read()).map((item) => (item.type === "problem" ? item.problem.line : "entry"))).toEqual([
      1,
      "entry",
      3,
      4,
    ]);
  });

  test("treats only the line before `resumed` as torn", async () => {
    const resumed = formatEntry({ event: "resumed", ...stamp });
    writeFileSync(journal, `damage\n{"event":"beg\n${resumed}${resumed}${formatEntry(begin(1))}`);
    expect((await read()).map((item) => (item.type === "problem" ? item.problem.line : "entry"))).toEqual([1, "entry"]);
  });

  test("passes each line to the filter, and parses only those that it accepts", async () => {
    write("", 1, 2);
    const items: JournalItem[] = [];
    for await (const item of readJournal(journal, ({ number }) => number === 2)) items.push(item);
    expect(items).toEqual([{ type: "entry", entry: begin(2) }]);
  });
});

describe("journalNumber", () => {
  test.each([
    ["journal", 0],
    ["journal.1", 1],
    ["journal.9999", 9999],
    ["journal.0", undefined],
    ["journal.01", undefined],
    ["journal.10000", undefined],
    ["journal.1x", undefined],
    ["journal.x1", undefined],
    ["journalx1", undefined],
    ["journal.", undefined],
    ["other.1", undefined],
    ["journals.1", undefined],
  ])("%s is number %s", (name, number) => {
    expect(journalNumber("/var/lib/unghost/journal", name)).toBe(number);
  });
});
