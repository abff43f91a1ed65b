import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import fs from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { readHistory } from "../../../src/heal/journal/reader.ts";
import { type QuarantineAction, settleUndo } from "../../../src/heal/quarantine/recover.ts";
import { undo } from "../../../src/heal/quarantine/undo.ts";
import { refuse } from "../../../src/heal/state/outcome.ts";
import { diskError, withFileSystem } from "../../support/failing-fs.ts";
import { heldOpenBelow } from "../../support/held-open.ts";
import { type HealFixture, makeHealFixture, otherFileSystem } from "../heal-fixture.ts";
import { quarantined } from "./quarantined.ts";

/** The real function, also while it is replaced. */
const { link, unlink } = fs;

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

/** Runs a callback after the undo was journaled and before it is made. */
function meanwhile(happens: () => void): void {
  const { journal } = fixture;
  const undoing = journal.undoing.bind(journal);
  vi.spyOn(journal, "undoing").mockImplementation(async (id) => {
    const announced = await undoing(id);
    happens();
    return announced;
  });
}

async function stateOf(id: string) {
  await fixture.journal.close();
  return (await readHistory(fixture.stateDir.journal)).records.find((record) => record.id === id);
}

test("undoes the named entry, and no other", async () => {
  const [first, second] = [await quarantined(fixture, "first"), await quarantined(fixture, "second")];

  expect(await undo(fixture, { id: second.id })).toMatchObject({ outcome: "undone", id: second.id, path: second.path });

  expect([readFileSync(second.path, "utf8"), readFileSync(first.file, "utf8")]).toEqual(["second", "first"]);
});

describe("a change while a file is put back", () => {
  test("a newer file stays, and the old one stays in quarantine", async () => {
    const { id, path, file } = await quarantined(fixture, "cache");
    meanwhile(() => writeFileSync(path, "newer"));

    expect(await undo(fixture, { id })).toEqual({
      outcome: "refused",
      id,
      refusal: {
        message: expect.stringContaining("something newer is there"),
        next: `Move it away first if you want the old one, which stays in ${file}.`,
      },
    });
    expect([readFileSync(path, "utf8"), readFileSync(file, "utf8")]).toEqual(["newer", "cache"]);
    const detail = "An undo was refused: something newer is there.";
    expect(await stateOf(id)).toMatchObject({ state: "done", outcome: "healed", detail });
  });

  test("the file goes back into its directory when that was renamed", async () => {
    const { id, path, file } = await quarantined(fixture, "cache");
    const parent = dirname(path);
    meanwhile(() => renameSync(parent, `${parent}.gone`));

    const outcome = await undo(fixture, { id });

    renameSync(`${parent}.gone`, parent);
    expect(outcome).toMatchObject({ outcome: "undone", id });
    expect([readFileSync(path, "utf8"), existsSync(file)]).toEqual(["cache", false]);
  });

  test("a damaged quarantine is an error with a next step", async () => {
    const { id, file } = await quarantined(fixture, "cache");
    const entry = dirname(file);
    meanwhile(() => {
      rmSync(file);
      mkdirSync(file);
      writeFileSync(join(file, "x"), "");
    });

    expect(await undo(fixture, { id })).toMatchObject({
      outcome: "failed",
      id,
      refusal: {
        message: expect.stringContaining("cache could not be put back: "),
        next: "Repair the cause, then run unghost undo again.",
      },
    });
    expect(readFileSync(join(entry, "cache", "x"), "utf8")).toBe("");
    expect(await stateOf(id)).toMatchObject({ state: "done", outcome: "healed" });
  });

  test("the file stays in quarantine when the journal cannot be written", async () => {
    const { id, file } = await quarantined(fixture, "cache");
    vi.spyOn(fixture.journal, "undoing").mockResolvedValue(refuse("The disk is full.", "Free some space."));

    expect(await undo(fixture, { id })).toEqual({
      outcome: "refused",
      id,
      refusal: { message: "The disk is full.", next: "Free some space." },
    });
    expect(readFileSync(file, "utf8")).toBe("cache");
  });

  test("a link in place of the directory is not followed", async () => {
    const { id, path, file } = await quarantined(fixture, "cache");
    const parent = dirname(path);
    renameSync(parent, `${parent}.real`);
    symlinkSync(`${parent}.real`, parent);

    const message = expect.stringContaining("symbolic link") as unknown;
    expect(await undo(fixture, { id })).toMatchObject({ outcome: "refused", id, refusal: { message } });
    expect(readFileSync(file, "utf8")).toBe("cache");
  });
});

describe("an error while a file is put back", () => {
  test("an error before any change is reported with a next step", async () => {
    const { id, file } = await quarantined(fixture, "cache");
    vi.spyOn(fixture.journal, "undoing").mockRejectedValue(new Error("the disk is gone"));

    expect(await undo(fixture, { id })).toEqual({
      outcome: "failed",
      id,
      refusal: {
        message: expect.stringMatching(/cache could not be put back: .*the disk is gone/),
        next: "Repair the cause, then run unghost undo again.",
      },
    });
    expect(readFileSync(file, "utf8")).toBe("cache");
  });

  test("an error after the file was put back does not revert it", async () => {
    const { id, path } = await quarantined(fixture, "cache");
    vi.spyOn(fixture.journal, "undone").mockRejectedValueOnce(new Error("the disk is gone"));

    expect(await undo(fixture, { id })).toMatchObject({ outcome: "undone", id, path });

    expect(readFileSync(path, "utf8")).toBe("cache");
    expect(await stateOf(id)).toMatchObject({ state: "undone", detail: expect.stringContaining("had been put back") });
  });

  async function interrupted() {
    const { id, path, file } = await quarantined(fixture, "cache");
    const [record] = (await readHistory(fixture.stateDir.journal)).records;
    if (record?.action.kind !== "quarantine-file") throw new Error("no entry");
    return { id, path, file, settle: () => settleUndo(fixture, id, record.action as QuarantineAction) };
  }

  test("an interrupted undo is not completed through a link in place of the directory", async () => {
    const { path, file, settle } = await interrupted();
    const parent = dirname(path);
    renameSync(parent, `${parent}.real`);
    symlinkSync(`${parent}.real`, parent);

    expect(await settle()).toMatchObject({ how: "unsettled", detail: expect.stringContaining("symbolic link") });
    expect(readFileSync(file, "utf8")).toBe("cache");
  });

  test("an interrupted undo whose directory is gone leaves the file in quarantine", async () => {
    const { path, file, settle } = await interrupted();
    rmSync(dirname(path), { recursive: true });

    expect(await settle()).toMatchObject({ how: "completed", detail: expect.stringContaining("still in quarantine") });
    expect(readFileSync(file, "utf8")).toBe("cache");
  });

  test("an interrupted undo whose file vanished from quarantine is reported as lost", async () => {
    const { path, file, settle } = await interrupted();
    rmSync(file);

    expect(await settle()).toMatchObject({ how: "lost", detail: expect.stringContaining(path) });
  });

  test("an interrupted undo whose file vanished is not completed with another file at its path", async () => {
    const { path, file, settle } = await interrupted();
    rmSync(file);
    writeFileSync(path, "another pod's cache");

    expect(await settle()).toMatchObject({ how: "interrupted", detail: expect.stringContaining("other content") });
    expect(readFileSync(path, "utf8")).toBe("another pod's cache");
  });

  test("fails when the file vanishes from quarantine while it is put back", async () => {
    const { id, file } = await quarantined(fixture, "cache");
    vi.spyOn(fixture.journal, "undoing").mockImplementationOnce(() => {
      rmSync(file);
      return Promise.resolve({ ok: true, value: undefined });
    });

    expect(await undo(fixture, { id })).toMatchObject({
      outcome: "failed",
      refusal: { message: expect.stringContaining("neither") },
    });
  });

  test("an interrupted undo that had put the file back is completed", async () => {
    const { path, file, settle } = await interrupted();
    linkSync(file, path);

    expect(await settle()).toMatchObject({ how: "undone", detail: expect.stringContaining("had been put back") });
    expect([readFileSync(path, "utf8"), existsSync(file)]).toEqual(["cache", false]);
  });

  test("an interrupted undo that had put the file back is completed when its copy vanishes meanwhile", async () => {
    const { path, file, settle } = await interrupted();
    linkSync(file, path);
    const tooLate: typeof unlink = (target) => {
      rmSync(file, { force: true });
      return unlink(target);
    };

    expect(await withFileSystem({ unlink: tooLate }, settle)).toMatchObject({ how: "undone" });
    expect(readFileSync(path, "utf8")).toBe("cache");
  });
});

describe.runIf(otherFileSystem() !== undefined)("undo across file systems", () => {
  test("a newer file stays, and no copy stays beside it", async () => {
    await fixture.remove();
    fixture = await makeHealFixture({ cachesUnder: otherFileSystem() ?? "" });
    const { id, path } = await quarantined(fixture, "cache");
    meanwhile(() => writeFileSync(path, "newer"));

    expect(await undo(fixture, { id })).toMatchObject({ outcome: "refused", id });
    expect([readdirSync(fixture.caches), readFileSync(path, "utf8")]).toEqual([["cache"], "newer"]);
  });

  test("a successful undo is confirmed without a recovery", async () => {
    await fixture.remove();
    fixture = await makeHealFixture({ cachesUnder: otherFileSystem() ?? "" });
    const { id } = await quarantined(fixture, "cache");
    await undo(fixture, { id });
    expect(await stateOf(id)).not.toHaveProperty("detail", expect.anything());
  });

  test("a file that changes in quarantine while it is copied is not put back", async () => {
    await fixture.remove();
    fixture = await makeHealFixture({ cachesUnder: otherFileSystem() ?? "" });
    const { id, path, file } = await quarantined(fixture, "cache");
    meanwhile(() => writeFileSync(file, "CACHE"));

    expect(await undo(fixture, { id })).toMatchObject({
      outcome: "failed",
      refusal: { message: expect.stringContaining("differs") },
    });
    expect([existsSync(path), readFileSync(file, "utf8")]).toEqual([false, "CACHE"]);
  });
});

describe("undo when the disk fails", () => {
  /** The first link fails, like a disk with a temporary error. */
  function failingOnce(happens: () => void = () => undefined, error = diskError()): typeof link {
    let isFirst = true;
    return (from, to) => {
      if (!isFirst) return link(from, to);
      isFirst = false;
      happens();
      return Promise.reject(error);
    };
  }

  test("a file that appears during the copy stays, and no copy stays beside it", async () => {
    const { id, path, file } = await quarantined(fixture, "cache");
    const otherDisk = failingOnce(() => writeFileSync(path, "newer"), diskError("EXDEV"));

    expect(await withFileSystem({ link: otherDisk }, () => undo(fixture, { id }))).toMatchObject({
      outcome: "refused",
    });

    expect([readdirSync(fixture.caches), readFileSync(path, "utf8")]).toEqual([["cache"], "newer"]);
    expect(readFileSync(file, "utf8")).toBe("cache");
  });

  test("nothing is copied: the file stays in quarantine, and the error is reported", async () => {
    const { id, path, file } = await quarantined(fixture, "cache");

    const outcome = await withFileSystem({ link: failingOnce() }, () => undo(fixture, { id }));

    expect(outcome).toMatchObject({ outcome: "failed", id, refusal: { message: expect.stringContaining("EIO") } });
    expect([existsSync(path), readFileSync(file, "utf8")]).toEqual([false, "cache"]);
    expect(await stateOf(id)).toMatchObject({ state: "done", outcome: "healed" });
  });

  test("the entry stays open for the next run when the directory became a link", async () => {
    const { id, path } = await quarantined(fixture, "cache");
    const parent = dirname(path);
    const replace = () => {
      renameSync(parent, `${parent}.real`);
      symlinkSync(`${parent}.real`, parent);
    };

    const outcome = await withFileSystem({ link: failingOnce(replace) }, () => undo(fixture, { id }));

    expect(outcome.outcome).toBe("failed");
    await fixture.journal.close();
    expect(await readHistory(fixture.stateDir.journal)).toMatchObject({
      records: [{ state: "undoing" }],
      problems: [],
    });
    rmSync(`${parent}.real`, { recursive: true });
  });
});

test("undo within one file system moves the file itself, not a copy", async () => {
  const { id, path, file } = await quarantined(fixture, "cache");
  const { ino } = statSync(file);
  await undo(fixture, { id });
  expect(statSync(path).ino).toBe(ino);
});

test("undo leaves no directory descriptor open", async () => {
  const { id } = await quarantined(fixture, "cache");
  await undo(fixture, { id });
  expect(heldOpenBelow(fixture.caches)).toEqual([]);
});
