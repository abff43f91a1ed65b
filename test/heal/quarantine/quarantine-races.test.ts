import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { HealContext } from "../../../src/heal/execution/session.ts";
import { holdDirectory } from "../../../src/heal/files/held-directory.ts";
import { readHistory } from "../../../src/heal/journal/history.ts";
import { placesOf } from "../../../src/heal/quarantine/move-away.ts";
import { MAX_QUARANTINE_BYTES, quarantineFile } from "../../../src/heal/quarantine/quarantine.ts";
import { restoreFile } from "../../../src/heal/quarantine/undo.ts";
import { makeWorkshop, valueOf, WHY, type Workshop } from "../workshop.ts";

let shop: Workshop;
beforeEach(async () => {
  shop = await makeWorkshop();
});
afterEach(() => shop.remove());

/** Something happens after the move was announced and before it is made. */
function meanwhile(happens: () => void): HealContext {
  const { journal } = shop;
  const begin = journal.begin.bind(journal);
  vi.spyOn(journal, "begin").mockImplementation(async (intent) => {
    const started = await begin(intent);
    happens();
    return started;
  });
  return shop;
}

async function history() {
  await shop.journal.close();
  return (await readHistory(shop.stateDir.journal)).records;
}

describe("a file is not moved to quarantine", () => {
  test.each<readonly [string, (path: string) => void]>([
    [
      "is replaced",
      (path) => {
        writeFileSync(`${path}.new`, "new");
        renameSync(`${path}.new`, path);
      },
    ],
    ["is removed", (path) => rmSync(path)],
    [
      "becomes a directory",
      (path) => {
        rmSync(path);
        mkdirSync(path);
      },
    ],
  ])("when it %s after the move was announced", async (_, happens) => {
    const { path, expected } = await shop.put("cache", "old");

    const outcome = await quarantineFile(
      meanwhile(() => happens(path)),
      { ...WHY, path, expected },
    );

    expect(outcome).toMatchObject({
      outcome: "refused",
      refusal: { message: expect.stringContaining("was changed since"), next: "Scan again." },
    });
    expect(await history()).toMatchObject([{ state: "done", outcome: "refused" }]);
  });

  test("when the quarantine cannot be written: the entry stays open for the next run", async () => {
    const { path, expected } = await shop.put("cache", "old");
    const { quarantine } = shop.stateDir;
    const breakIt = (): void => {
      rmSync(quarantine, { recursive: true });
      writeFileSync(quarantine, "in the way");
    };

    const outcome = await quarantineFile(meanwhile(breakIt), { ...WHY, path, expected });

    expect(outcome).toMatchObject({
      outcome: "failed",
      refusal: {
        message: expect.stringMatching(/cache could not be moved to quarantine: .* The next run recovers it/),
        next: "See unghost history.",
      },
    });
    expect([readFileSync(path, "utf8"), await history()]).toMatchObject(["old", [{ state: "open" }]]);
  });

  test("when its directory is gone", async () => {
    const { path, expected } = await shop.put("cache", "old");
    const gone = join(dirname(path), "gone", "cache");

    expect(await quarantineFile(shop, { ...WHY, path: gone, expected })).toMatchObject({
      outcome: "refused",
      refusal: { message: expect.stringContaining("no longer there"), next: expect.stringContaining("scan again") },
    });
    expect(await history()).toEqual([]);
  });

  test("when it is a directory, or larger than any cache file", async () => {
    const { path, expected } = await shop.put("cache", "old");
    const directory = join(dirname(path), "directory");
    mkdirSync(directory);
    const size = MAX_QUARANTINE_BYTES + 1n;
    const large = await shop.put("large", new Uint8Array(Number(size)));

    expect(await quarantineFile(shop, { ...WHY, path: directory, expected })).toMatchObject({
      refusal: { message: expect.stringContaining("a directory"), next: expect.stringContaining("manually") },
    });
    expect(await quarantineFile(shop, { ...WHY, ...large })).toMatchObject({
      outcome: "refused",
      refusal: { message: expect.stringContaining("16777217 bytes"), next: expect.stringContaining("manually") },
    });
    expect(existsSync(large.path)).toBe(true);
  });
});

describe("a file is put back", () => {
  async function quarantined() {
    const { path, expected } = await shop.put("cache", "old");
    const moved = await quarantineFile(shop, { ...WHY, path, expected });
    if (moved.outcome !== "healed") throw new Error(moved.refusal.message);
    const places = placesOf(shop.stateDir, moved.id, path);
    const [record] = (await readHistory(shop.stateDir.journal)).records;
    if (record?.action.kind !== "quarantine-file") throw new Error("no entry");
    const { before } = record.action;
    const parent = valueOf(holdDirectory("/", dirname(path)));
    if (parent === undefined) throw new Error("no directory");
    return { path, places, before, parent };
  }

  test("where its name is free", async () => {
    const { path, places, before, parent } = await quarantined();
    expect(await restoreFile(parent, places, before)).toBe(true);
    parent.close();
    expect([readFileSync(path, "utf8"), existsSync(places.directory)]).toEqual(["old", false]);
  });

  test("not over a file that somebody has written since", async () => {
    const { path, places, before, parent } = await quarantined();
    writeFileSync(path, "newer");
    expect(await restoreFile(parent, places, before)).toBe(false);
    parent.close();
    expect([readFileSync(path, "utf8"), readFileSync(places.file, "utf8")]).toEqual(["newer", "old"]);
  });

  test("not when it is gone from quarantine", async () => {
    const { places, before, parent } = await quarantined();
    rmSync(places.file);
    await expect(restoreFile(parent, places, before)).rejects.toThrow("ENOENT");
    parent.close();
  });
});
