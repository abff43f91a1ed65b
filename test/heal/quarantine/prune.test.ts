import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type JournalId, timeOf } from "../../../src/heal/journal/entry.ts";
import { readHistory } from "../../../src/heal/journal/reader.ts";
import { listQuarantine, pruneQuarantine } from "../../../src/heal/quarantine/inventory.ts";
import { quarantineFile } from "../../../src/heal/quarantine/quarantine.ts";
import { undo } from "../../../src/heal/quarantine/undo.ts";
import { diskError, withFileSystem } from "../../support/failing-fs.ts";
import { type HealFixture, makeHealFixture, STOP, valueOf, WHY } from "../heal-fixture.ts";

let shop: HealFixture;
beforeEach(async () => {
  shop = await makeHealFixture();
});
afterEach(() => shop.remove());

const EVERYTHING = { olderThan: new Date(Date.UTC(2100, 0)) };

async function moved(name: string): Promise<JournalId> {
  const outcome = await quarantineFile(shop, { ...WHY, ...(await shop.put(name, name)) });
  if (outcome.outcome !== "healed") throw new Error(outcome.refusal.message);
  return outcome.id;
}

async function stateOf(id: JournalId): Promise<string | undefined> {
  return (await readHistory(shop.stateDir.journal)).records.find((record) => record.id === id)?.state;
}

test("deletes older entries, keeps newer ones, and journals it", async () => {
  const old = await moved("old");
  const entries = await listQuarantine(shop.stateDir);
  const young = await moved("young");
  const youngSince = (await listQuarantine(shop.stateDir)).find(({ id }) => id === young)?.since ?? new Date(0);

  const { pruned, kept, failed } = await pruneQuarantine(shop, { olderThan: youngSince });

  expect(entries).toMatchObject([{ id: old, files: 1, bytes: 3 }]);
  expect([pruned.map(({ id }) => id), kept, failed]).toEqual([[old], [], []]);
  expect(readdirSync(shop.stateDir.quarantine)).toEqual([young]);
  expect([await stateOf(old), await stateOf(young)]).toEqual(["pruned", "done"]);
});

test("a pruned entry cannot be undone, and is not offered", async () => {
  const id = await moved("old");
  await pruneQuarantine(shop, EVERYTHING);

  expect(await undo(shop, { id })).toMatchObject({ outcome: "refused" });
  expect(await undo(shop, "last")).toMatchObject({ outcome: "refused" });
});

test("keeps entries of a run that has not ended, even when they are named", async () => {
  const id = await moved("old");
  valueOf(await shop.journal.begin({ ...WHY, action: STOP }));

  for (const target of [EVERYTHING, { ids: new Set([id]) }]) {
    const { pruned, kept } = await pruneQuarantine(shop, target);
    expect([pruned, kept]).toMatchObject([[], [{ id, keep: "unfinished" }]]);
  }
  expect(await undo(shop, { id })).toMatchObject({ outcome: "undone" });
});

test("keeps an entry whose undo was interrupted", async () => {
  const id = await moved("old");
  valueOf(await shop.journal.undoing(id));

  expect((await pruneQuarantine(shop, EVERYTHING)).kept).toMatchObject([{ id, keep: "unfinished" }]);
  expect(readdirSync(shop.stateDir.quarantine)).toEqual([id]);
});

test("by age, keeps an entry that may be younger than its date, and asks only about entries of the journal", async () => {
  const [doubtful, old] = [await moved("doubtful"), await moved("old")];
  const unexplained = shop.newId();
  mkdirSync(join(shop.stateDir.quarantine, unexplained));

  const target = { ...EVERYTHING, mayBeYounger: ({ id }: { readonly id: JournalId }) => id === doubtful };
  const { pruned, kept } = await pruneQuarantine(shop, target);

  expect([pruned, kept].map((entries) => entries.map(({ id }) => id))).toEqual([[old], [unexplained]]);
  expect(readdirSync(shop.stateDir.quarantine).toSorted()).toEqual([doubtful, unexplained].toSorted());
});

test("by age, keeps files without a journal entry; by name, deletes them", async () => {
  const unexplained = shop.newId();
  mkdirSync(join(shop.stateDir.quarantine, unexplained));
  writeFileSync(join(shop.stateDir.quarantine, unexplained, "file"), "x");
  const lost = await moved("lost");
  valueOf(await shop.journal.recovered(lost, "lost", "gone"));

  const { pruned, kept } = await pruneQuarantine(shop, EVERYTHING);

  expect(pruned).toEqual([]);
  expect(kept).toMatchObject([
    { id: unexplained, keep: "no-journal-entry" },
    { id: lost, keep: "lost" },
  ]);
  await pruneQuarantine(shop, { ids: new Set([unexplained, lost]) });
  expect(readdirSync(shop.stateDir.quarantine)).toEqual([]);
});

test("finishes a deletion that a crash interrupted after the journal entry", async () => {
  const id = await moved("old");
  valueOf(await shop.journal.pruned(id));

  const { pruned } = await pruneQuarantine(shop, { olderThan: new Date(0) });

  expect(pruned.map((entry) => entry.id)).toEqual([id]);
  expect(existsSync(join(shop.stateDir.quarantine, id))).toBe(false);
});

test("keeps directories that unghost did not create", async () => {
  mkdirSync(join(shop.stateDir.quarantine, "notes"));

  expect(await pruneQuarantine(shop, EVERYTHING)).toEqual({ pruned: [], kept: [], failed: [] });
  expect(readdirSync(shop.stateDir.quarantine)).toEqual(["notes"]);
});

test("deletes nothing when the journal cannot be written", async () => {
  const id = await moved("old");
  await shop.journal.close();

  const { pruned, failed } = await pruneQuarantine(shop, EVERYTHING);

  expect([pruned, failed]).toEqual([[], [{ id, reason: expect.stringContaining("journal") as unknown }]]);
  expect(readdirSync(shop.stateDir.quarantine)).toEqual([id]);
});

test("reports a failed deletion, and the next prune retries it", async () => {
  const id = await moved("old");

  const { pruned, failed } = await withFileSystem({ rm: () => Promise.reject(diskError()) }, () =>
    pruneQuarantine(shop, EVERYTHING),
  );

  expect([pruned, failed]).toEqual([[], [{ id, reason: expect.stringContaining("EIO") as unknown }]]);
  expect((await pruneQuarantine(shop, { olderThan: new Date(0) })).pruned).toMatchObject([{ id }]);
});

test("an entry that another process deletes meanwhile counts as deleted", async () => {
  const id = await moved("old");
  const pruned = shop.journal.pruned.bind(shop.journal);
  vi.spyOn(shop.journal, "pruned").mockImplementation((one) => {
    rmSync(join(shop.stateDir.quarantine, id), { recursive: true });
    return pruned(one);
  });

  expect(await pruneQuarantine(shop, EVERYTHING)).toMatchObject({ pruned: [{ id }], failed: [] });
});

describe("listQuarantine", () => {
  test("lists entries with their journal record, and others without", async () => {
    const id = await moved("old");
    const [record] = (await readHistory(shop.stateDir.journal)).records;
    const unexplained = shop.newId();
    mkdirSync(join(shop.stateDir.quarantine, unexplained, "deep"), { recursive: true });
    writeFileSync(join(shop.stateDir.quarantine, unexplained, "deep", "file"), "four");
    writeFileSync(join(shop.stateDir.quarantine, unexplained, "file"), "two");

    expect(await listQuarantine(shop.stateDir)).toEqual([
      { id, since: timeOf(id), files: 1, bytes: 3, record },
      { id: unexplained, since: timeOf(unexplained), files: 2, bytes: 7, keep: "no-journal-entry" },
    ]);
  });

  test("is empty without entries and without a quarantine directory", async () => {
    expect(await listQuarantine(shop.stateDir)).toEqual([]);
    rmSync(shop.stateDir.quarantine, { recursive: true });
    expect(await listQuarantine(shop.stateDir)).toEqual([]);
  });

  test("throws when the quarantine cannot be read", async () => {
    rmSync(shop.stateDir.quarantine, { recursive: true });
    writeFileSync(shop.stateDir.quarantine, "");
    await expect(listQuarantine(shop.stateDir)).rejects.toThrow("ENOTDIR");
  });

  test("an entry that is deleted while the journal is read has no files", async () => {
    const id = await moved("old");
    const listing = listQuarantine(shop.stateDir);
    rmSync(join(shop.stateDir.quarantine, id), { recursive: true });
    expect(await listing).toMatchObject([{ id, files: 0, bytes: 0 }]);
  });
});
