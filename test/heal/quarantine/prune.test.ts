import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type JournalId, timeOf } from "../../../src/heal/journal/entry.ts";
import { readHistory } from "../../../src/heal/journal/reader.ts";
import { filesOf, listQuarantine, pruneQuarantine } from "../../../src/heal/quarantine/inventory.ts";
import { quarantineFile } from "../../../src/heal/quarantine/quarantine.ts";
import { undo } from "../../../src/heal/quarantine/undo.ts";
import { diskError, withFileSystem } from "../../support/failing-fs.ts";
import { type HealFixture, makeHealFixture, STOP, valueOf, WHY } from "../heal-fixture.ts";

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

const EVERYTHING = { olderThan: new Date(Date.UTC(2100, 0)) };

async function moved(name: string): Promise<JournalId> {
  const outcome = await quarantineFile(fixture, { ...WHY, ...(await fixture.put(name, name)) });
  if (outcome.outcome !== "healed") throw new Error(outcome.refusal.message);
  return outcome.id;
}

async function stateOf(id: JournalId): Promise<string | undefined> {
  return (await readHistory(fixture.stateDir.journal)).records.find((record) => record.id === id)?.state;
}

test("deletes older entries, keeps newer ones, and journals it", async () => {
  const old = await moved("old");
  const entries = await listQuarantine(fixture.stateDir);
  const young = await moved("young");
  const youngSince = (await listQuarantine(fixture.stateDir)).find(({ id }) => id === young)?.since ?? new Date(0);

  const { pruned, kept, failed } = await pruneQuarantine(fixture, { olderThan: youngSince });

  expect(entries).toMatchObject([{ id: old, files: 1, bytes: 3 }]);
  expect([pruned.map(({ id }) => id), kept, failed]).toEqual([[old], [], []]);
  expect(readdirSync(fixture.stateDir.quarantine)).toEqual([young]);
  expect([await stateOf(old), await stateOf(young)]).toEqual(["pruned", "done"]);
});

test("the files of an entry are named with their paths in order, links are not followed, and a missing entry has none", async () => {
  const entry = join(fixture.stateDir.quarantine, "entry");
  mkdirSync(join(entry, "logs"), { recursive: true });
  writeFileSync(join(entry, "z"), "four");
  writeFileSync(join(entry, "logs/0.log"), "line");
  symlinkSync("/etc", join(entry, "etc"));

  expect(filesOf(entry)).toEqual([
    { path: join(entry, "etc"), bytes: 4 },
    { path: join(entry, "logs/0.log"), bytes: 4 },
    { path: join(entry, "z"), bytes: 4 },
  ]);
  expect(filesOf(join(entry, "none"))).toEqual([]);
});

test("a pruned entry cannot be undone, and is not offered", async () => {
  const id = await moved("old");
  await pruneQuarantine(fixture, EVERYTHING);

  expect(await undo(fixture, { id })).toMatchObject({ outcome: "refused" });
  expect(await undo(fixture, "last")).toMatchObject({ outcome: "refused" });
});

test("keeps entries of a run that has not ended, even when they are named", async () => {
  const id = await moved("old");
  valueOf(await fixture.journal.begin({ ...WHY, action: STOP }));

  for (const target of [EVERYTHING, { ids: new Set([id]) }]) {
    const { pruned, kept } = await pruneQuarantine(fixture, target);
    expect([pruned, kept]).toMatchObject([[], [{ id, keep: "unfinished" }]]);
  }
  expect(await undo(fixture, { id })).toMatchObject({ outcome: "undone" });
});

test("keeps an entry whose undo was interrupted", async () => {
  const id = await moved("old");
  valueOf(await fixture.journal.undoing(id));

  expect((await pruneQuarantine(fixture, EVERYTHING)).kept).toMatchObject([{ id, keep: "unfinished" }]);
  expect(readdirSync(fixture.stateDir.quarantine)).toEqual([id]);
});

test("by age, keeps an entry that may be younger than its date, and asks only about entries of the journal", async () => {
  const [doubtful, old] = [await moved("doubtful"), await moved("old")];
  const unexplained = fixture.newId();
  mkdirSync(join(fixture.stateDir.quarantine, unexplained));

  const target = { ...EVERYTHING, mayBeYounger: ({ id }: { readonly id: JournalId }) => id === doubtful };
  const { pruned, kept } = await pruneQuarantine(fixture, target);

  expect([pruned, kept].map((entries) => entries.map(({ id }) => id))).toEqual([[old], [unexplained]]);
  expect(readdirSync(fixture.stateDir.quarantine).toSorted()).toEqual([doubtful, unexplained].toSorted());
});

test("by age, keeps files without a journal entry; by name, deletes them", async () => {
  const unexplained = fixture.newId();
  mkdirSync(join(fixture.stateDir.quarantine, unexplained));
  writeFileSync(join(fixture.stateDir.quarantine, unexplained, "file"), "x");
  const lost = await moved("lost");
  valueOf(await fixture.journal.recovered(lost, "lost", "gone"));

  const { pruned, kept } = await pruneQuarantine(fixture, EVERYTHING);

  expect(pruned).toEqual([]);
  expect(kept).toMatchObject([
    { id: unexplained, keep: "no-journal-entry" },
    { id: lost, keep: "lost" },
  ]);
  await pruneQuarantine(fixture, { ids: new Set([unexplained, lost]) });
  expect(readdirSync(fixture.stateDir.quarantine)).toEqual([]);
});

test("finishes a deletion that a crash interrupted after the journal entry", async () => {
  const id = await moved("old");
  valueOf(await fixture.journal.pruned(id));

  const { pruned } = await pruneQuarantine(fixture, { olderThan: new Date(0) });

  expect(pruned.map((entry) => entry.id)).toEqual([id]);
  expect(existsSync(join(fixture.stateDir.quarantine, id))).toBe(false);
});

test("keeps directories that unghost did not create", async () => {
  mkdirSync(join(fixture.stateDir.quarantine, "notes"));

  expect(await pruneQuarantine(fixture, EVERYTHING)).toEqual({ pruned: [], kept: [], failed: [] });
  expect(readdirSync(fixture.stateDir.quarantine)).toEqual(["notes"]);
});

test("deletes nothing when the journal cannot be written", async () => {
  const id = await moved("old");
  await fixture.journal.close();

  const { pruned, failed } = await pruneQuarantine(fixture, EVERYTHING);

  expect([pruned, failed]).toEqual([[], [{ id, reason: expect.stringContaining("journal") as unknown }]]);
  expect(readdirSync(fixture.stateDir.quarantine)).toEqual([id]);
});

test("reports a failed deletion, and the next prune retries it", async () => {
  const id = await moved("old");

  const { pruned, failed } = await withFileSystem({ rm: () => Promise.reject(diskError()) }, () =>
    pruneQuarantine(fixture, EVERYTHING),
  );

  expect([pruned, failed]).toEqual([[], [{ id, reason: expect.stringContaining("EIO") as unknown }]]);
  expect((await pruneQuarantine(fixture, { olderThan: new Date(0) })).pruned).toMatchObject([{ id }]);
});

test("an entry that another process deletes meanwhile counts as deleted", async () => {
  const id = await moved("old");
  const pruned = fixture.journal.pruned.bind(fixture.journal);
  vi.spyOn(fixture.journal, "pruned").mockImplementation((one) => {
    rmSync(join(fixture.stateDir.quarantine, id), { recursive: true });
    return pruned(one);
  });

  expect(await pruneQuarantine(fixture, EVERYTHING)).toMatchObject({ pruned: [{ id }], failed: [] });
});

describe("listQuarantine", () => {
  test("lists entries with their journal record, and others without", async () => {
    const id = await moved("old");
    const [record] = (await readHistory(fixture.stateDir.journal)).records;
    const unexplained = fixture.newId();
    mkdirSync(join(fixture.stateDir.quarantine, unexplained, "deep"), { recursive: true });
    writeFileSync(join(fixture.stateDir.quarantine, unexplained, "deep", "file"), "four");
    writeFileSync(join(fixture.stateDir.quarantine, unexplained, "file"), "two");

    expect(await listQuarantine(fixture.stateDir)).toEqual([
      { id, since: timeOf(id), files: 1, bytes: 3, record },
      { id: unexplained, since: timeOf(unexplained), files: 2, bytes: 7, keep: "no-journal-entry" },
    ]);
  });

  test("is empty without entries and without a quarantine directory", async () => {
    expect(await listQuarantine(fixture.stateDir)).toEqual([]);
    rmSync(fixture.stateDir.quarantine, { recursive: true });
    expect(await listQuarantine(fixture.stateDir)).toEqual([]);
  });

  test("throws when the quarantine cannot be read", async () => {
    rmSync(fixture.stateDir.quarantine, { recursive: true });
    writeFileSync(fixture.stateDir.quarantine, "");
    await expect(listQuarantine(fixture.stateDir)).rejects.toThrow("ENOTDIR");
  });

  test("an entry that is deleted while the journal is read has no files", async () => {
    const id = await moved("old");
    const listing = listQuarantine(fixture.stateDir);
    rmSync(join(fixture.stateDir.quarantine, id), { recursive: true });
    expect(await listing).toMatchObject([{ id, files: 0, bytes: 0 }]);
  });
});
