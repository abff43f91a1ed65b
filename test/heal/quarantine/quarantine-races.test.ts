import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import fs from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { HealContext } from "../../../src/heal/journal/journal.ts";
import { readHistory } from "../../../src/heal/journal/reader.ts";
import { holdDirectory } from "../../../src/heal/quarantine/file-identity.ts";
import { placesOf } from "../../../src/heal/quarantine/move-away.ts";
import { MAX_QUARANTINE_BYTES, quarantineFile } from "../../../src/heal/quarantine/quarantine.ts";
import { restoreFile } from "../../../src/heal/quarantine/undo.ts";
import { diskError, withFileSystem } from "../../support/failing-fs.ts";
import { heldOpenBelow } from "../../support/held-open.ts";
import { type HealFixture, makeHealFixture, valueOf, WHY } from "../heal-fixture.ts";

/** The real functions, also while they are replaced. */
const { open, rename } = fs;

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

/** Runs a callback after the move was journaled and before it is made. */
function meanwhile(happens: () => void): HealContext {
  const { journal } = fixture;
  const begin = journal.begin.bind(journal);
  vi.spyOn(journal, "begin").mockImplementation(async (intent) => {
    const started = await begin(intent);
    happens();
    return started;
  });
  return fixture;
}

async function history() {
  await fixture.journal.close();
  return (await readHistory(fixture.stateDir.journal)).records;
}

describe("quarantine refuses or reverts", () => {
  test("when the file grows while it is hashed, without a journal entry", async () => {
    const { path, expected } = await fixture.put("cache", "old");
    const growing: typeof open = async (...args) => {
      const handle = await open(...args);
      appendFileSync(path, " and new");
      return handle;
    };

    const outcome = await withFileSystem({ open: growing }, () => quarantineFile(fixture, { ...WHY, path, expected }));

    expect(outcome).toMatchObject({ outcome: "refused", refusal: { message: expect.stringContaining("changed") } });
    expect([readFileSync(path, "utf8"), readFileSync(fixture.stateDir.journal, "utf8")]).toEqual(["old and new", ""]);
  });

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
  ])("when the file %s after the move was journaled", async (_, happens) => {
    const { path, expected } = await fixture.put("cache", "old");

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

  test("when the quarantine cannot be written, and the entry stays open for the next run", async () => {
    const { path, expected } = await fixture.put("cache", "old");
    const { quarantine } = fixture.stateDir;
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

  test("when the disk fails: the file is at its path, and the failure is journaled", async () => {
    const { path, expected } = await fixture.put("cache", "old");

    const outcome = await withFileSystem({ rename: () => Promise.reject(diskError()) }, () =>
      quarantineFile(fixture, { ...WHY, path, expected }),
    );

    expect(outcome).toMatchObject({
      outcome: "failed",
      refusal: {
        message: expect.stringMatching(/could not be moved.*EIO.*had not been moved/),
        next: "See unghost history.",
      },
    });
    expect([readFileSync(path, "utf8"), await history()]).toMatchObject(["old", [{ state: "rolled-back" }]]);
  });

  test("when the disk fails and the directory became a link: the entry stays open for the next run", async () => {
    const { path, expected } = await fixture.put("cache", "old");
    const failing = () => {
      renameSync(fixture.caches, `${fixture.caches}.real`);
      symlinkSync(`${fixture.caches}.real`, fixture.caches);
      return Promise.reject(diskError());
    };

    const outcome = await withFileSystem({ rename: failing }, () =>
      quarantineFile(fixture, { ...WHY, path, expected }),
    );

    expect(outcome.outcome).toBe("failed");
    await fixture.journal.close();
    expect(await readHistory(fixture.stateDir.journal)).toMatchObject({ records: [{ state: "open" }], problems: [] });
    rmSync(`${fixture.caches}.real`, { recursive: true });
  });

  test("when the file grows while it is read", async () => {
    const { path, expected } = await fixture.put("cache", "old");
    const grow: typeof open = async (...args) => {
      appendFileSync(path, "er");
      return await open(...args);
    };

    const outcome = await withFileSystem({ open: grow }, () => quarantineFile(fixture, { ...WHY, path, expected }));

    expect(outcome).toMatchObject({ outcome: "refused", refusal: { next: "Scan again." } });
    expect(readFileSync(path, "utf8")).toMatch(/^older/);
    expect(await history()).toEqual([]);
  });

  test("when two others replace it at once: all are kept, and the message names the path", async () => {
    const { path, expected } = await fixture.put("cache", "old");
    const interfere: typeof rename = async (from, to) => {
      writeFileSync(`${path}.new`, "new");
      renameSync(`${path}.new`, path);
      await rename(from, to);
      writeFileSync(path, "newest");
    };

    const outcome = await withFileSystem({ rename: interfere }, () =>
      quarantineFile(fixture, { ...WHY, path, expected }),
    );

    const [record] = await history();
    expect(outcome).toMatchObject({
      outcome: "failed",
      id: record?.id,
      refusal: {
        message: expect.stringContaining(fixture.stateDir.quarantine),
        next: expect.stringContaining("by hand"),
      },
    });
    expect(record).toMatchObject({ state: "done", outcome: "failed", detail: expect.stringContaining(path) });
    const kept = join(fixture.stateDir.quarantine, record?.id ?? "", "cache");
    expect([readFileSync(path, "utf8"), readFileSync(kept, "utf8")]).toEqual(["newest", "new"]);
  });

  test("when the directory is gone", async () => {
    const { path, expected } = await fixture.put("cache", "old");
    const gone = join(dirname(path), "gone", "cache");

    expect(await quarantineFile(fixture, { ...WHY, path: gone, expected })).toMatchObject({
      outcome: "refused",
      refusal: { message: expect.stringContaining("no longer there"), next: expect.stringContaining("scan again") },
    });
    expect(await history()).toEqual([]);
  });

  test("when the path is a directory, or the file is larger than any cache file", async () => {
    const { path, expected } = await fixture.put("cache", "old");
    const directory = join(dirname(path), "directory");
    mkdirSync(directory);
    const size = MAX_QUARANTINE_BYTES + 1n;
    const large = await fixture.put("large", new Uint8Array(Number(size)));

    expect(await quarantineFile(fixture, { ...WHY, path: directory, expected })).toMatchObject({
      refusal: { message: expect.stringContaining("a directory"), next: expect.stringContaining("manually") },
    });
    expect(await quarantineFile(fixture, { ...WHY, ...large })).toMatchObject({
      outcome: "refused",
      refusal: { message: expect.stringContaining("16777217 bytes"), next: expect.stringContaining("manually") },
    });
    expect(existsSync(large.path)).toBe(true);
  });
});

test("a move that took effect although the disk reported an error is confirmed", async () => {
  const { path, expected } = await fixture.put("cache", "old");
  const late: typeof rename = async (from, to) => {
    await rename(from, to);
    throw diskError();
  };

  const outcome = await withFileSystem({ rename: late }, () => quarantineFile(fixture, { ...WHY, path, expected }));

  if (outcome.outcome !== "healed") throw new Error(outcome.refusal.message);
  expect([existsSync(path), readFileSync(join(fixture.stateDir.quarantine, outcome.id, "cache"), "utf8")]).toEqual([
    false,
    "old",
  ]);
  expect(await history()).toMatchObject([{ state: "done", outcome: "healed" }]);
});

test("no descriptor stays open, whether a file is moved or refused", async () => {
  const { path, expected } = await fixture.put("cache", "old");
  await quarantineFile(fixture, { ...WHY, path, expected: { ...expected, size: 1n } });
  await quarantineFile(fixture, { ...WHY, path, expected });

  expect([...heldOpenBelow(fixture.caches), ...heldOpenBelow(fixture.stateDir.quarantine)]).toEqual([]);
});

describe("putting a file back", () => {
  async function quarantined() {
    const { path, expected } = await fixture.put("cache", "old");
    const moved = await quarantineFile(fixture, { ...WHY, path, expected });
    if (moved.outcome !== "healed") throw new Error(moved.refusal.message);
    const places = placesOf(fixture.stateDir, moved.id, path);
    const [record] = (await readHistory(fixture.stateDir.journal)).records;
    if (record?.action.kind !== "quarantine-file") throw new Error("no entry");
    const { before } = record.action;
    const parent = valueOf(holdDirectory("/", dirname(path)));
    if (parent === undefined) throw new Error("no directory");
    return { path, places, before, parent };
  }

  test("restores it when its path is free", async () => {
    const { path, places, before, parent } = await quarantined();
    expect(await restoreFile(parent, places, before)).toBe(true);
    parent.close();
    expect([readFileSync(path, "utf8"), existsSync(places.directory)]).toEqual(["old", false]);
  });

  test("refuses when the original path was written since", async () => {
    const { path, places, before, parent } = await quarantined();
    writeFileSync(path, "newer");
    expect(await restoreFile(parent, places, before)).toBe(false);
    parent.close();
    expect([readFileSync(path, "utf8"), readFileSync(places.file, "utf8")]).toEqual(["newer", "old"]);
  });

  test("refuses when it is gone from quarantine", async () => {
    const { places, before, parent } = await quarantined();
    rmSync(places.file);
    await expect(restoreFile(parent, places, before)).rejects.toThrow("ENOENT");
    parent.close();
  });
});
