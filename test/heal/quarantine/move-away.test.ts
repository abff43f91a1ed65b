import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FileState } from "../../../src/evidence/journal-action.ts";
import {
  type HeldDirectory,
  hashOf,
  holdDirectory,
  identify,
  openForReading,
} from "../../../src/heal/quarantine/file-identity.ts";
import {
  giveBack,
  moveAway,
  type Places,
  placesOf,
  removeEntryDirectory,
} from "../../../src/heal/quarantine/move-away.ts";
import { diskError, withFileSystem } from "../../support/failing-fs.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { type HealFixture, makeHealFixture, otherFileSystem, valueOf } from "../heal-fixture.ts";

const elsewhere = otherFileSystem();

/** At which use of the file's name the move reads it, renames it, and restores it. */
const layouts = [
  { name: "within one file system", cachesUnder: undefined, runs: true, take: 2, giveBack: 3 },
  { name: "across file systems", cachesUnder: elsewhere, runs: elsewhere !== undefined, take: 4, giveBack: 5 },
] as const;

for (const { name, cachesUnder, runs, take, giveBack: back } of layouts) {
  describe.runIf(runs)(`moveAway ${name}, with a concurrent writer at the worst moment`, () => {
    let fixture: HealFixture;
    let places: Places;
    let before: FileState;
    let path: string;

    beforeEach(async () => {
      fixture = await makeHealFixture(cachesUnder === undefined ? {} : { cachesUnder });
      ({ path } = await fixture.put("cache", "old"));
      utimesSync(path, 1000, 1000);
      places = placesOf(fixture.stateDir, fixture.newId(), path);
      const found = identify(path);
      if (found.what !== "file") throw new Error("no file");
      const handle = await openForReading(path);
      const sha256 = (await hashOf(handle, 100n)) ?? "";
      await handle.close();
      before = { ...found.identity, atimeNs: 0n, mode: 0o640, uid: 0, gid: 0, sha256 };
    });
    afterEach(() => fixture.remove());

    /** The held directory, with a callback right before the n-th use of the file's name. */
    async function move(happenings: Readonly<Record<number, () => void>>): Promise<string> {
      const held = valueOf(holdDirectory("/", dirname(path)));
      if (held === undefined) throw new Error("no directory");
      let uses = 0;
      const parent: HeldDirectory = {
        ...held,
        entry(entryName) {
          if (entryName === places.name) happenings[(uses += 1)]?.();
          return held.entry(entryName);
        },
      };
      try {
        return await moveAway(parent, places, before);
      } finally {
        held.close();
      }
    }

    function replace(content: string): void {
      writeFileSync(`${path}.new`, content);
      renameSync(`${path}.new`, path);
    }

    test("moves the file when there is no writer", async () => {
      expect(await move({})).toBe("moved");
      expect(readdirSync(fixture.caches)).toEqual([]);
      expect(readFileSync(places.file, "utf8")).toBe("old");
    });

    test("puts a file back that was written just before the move", async () => {
      expect(await move({ [take]: () => replace("new") })).toBe("changed");

      expect(readdirSync(fixture.caches)).toEqual(["cache"]);
      expect(readFileSync(path, "utf8")).toBe("new");
      expect(readdirSync(fixture.stateDir.quarantine)).toEqual([]);
    });

    test("puts a file back that was rewritten in place just before the move", async () => {
      expect(await move({ [take]: () => writeFileSync(path, "longer than it was") })).toBe("changed");

      expect(readdirSync(fixture.caches)).toEqual(["cache"]);
      expect(readFileSync(path, "utf8")).toBe("longer than it was");
    });

    test("puts a file back that was replaced just before the move, even with the same content", async () => {
      expect(await move({ [take]: () => replace("old") })).toBe("changed");
      expect(readFileSync(path, "utf8")).toBe("old");
      expect(readdirSync(fixture.stateDir.quarantine)).toEqual([]);
    });

    test("puts a link back that was created just before the move", async () => {
      const replaceByLink = () => {
        unlinkSync(path);
        symlinkSync("/etc/hostname", path);
      };
      expect(await move({ [take]: replaceByLink })).toBe("changed");
      expect(readlinkSync(path)).toBe("/etc/hostname");
      expect(readdirSync(fixture.caches)).toEqual(["cache"]);
    });

    test("puts a file back that was rewritten before it was read, with its old size and time", async () => {
      const rewrite = () => {
        writeFileSync(path, "OLD");
        utimesSync(path, 1000, 1000);
      };
      // The third use reads the file if it has to be copied, and is never reached otherwise.
      expect(await move({ [cachesUnder === undefined ? take : 3]: rewrite })).toBe("changed");
      expect(readFileSync(path, "utf8")).toBe("OLD");
      expect([readdirSync(fixture.caches), readdirSync(fixture.stateDir.quarantine)]).toEqual([["cache"], []]);
    });

    test("quarantined files are readable by their owner only", async () => {
      await move({});
      expect(statSync(places.directory).mode & 0o777).toBe(0o700);
    });

    test("keeps both files when another file appeared at the original path", async () => {
      expect(await move({ [take]: () => replace("new"), [back]: () => replace("newest") })).toBe("caught");

      expect(readFileSync(path, "utf8")).toBe("newest");
      expect([places.file, join(fixture.caches, places.asideName)].map(readIfThere)).toContain("new");
    });
  });
}

test("a rename that fails for any cause but EXDEV is an error", async () => {
  const fixture = await makeHealFixture();
  const { path } = await fixture.put("cache", "old");
  const places = placesOf(fixture.stateDir, fixture.newId(), path);
  const found = identify(path);
  const parent = valueOf(holdDirectory("/", dirname(path)));
  if (found.what !== "file" || parent === undefined) throw new Error("no file");
  const before = { ...found.identity, atimeNs: 0n, mode: 0o640, uid: 0, gid: 0, sha256: "0".repeat(64) };

  const moving = withFileSystem({ rename: () => Promise.reject(diskError()) }, () => moveAway(parent, places, before));

  await expect(moving).rejects.toThrow("EIO");
  expect([readFileSync(path, "utf8"), existsSync(places.file)]).toEqual(["old", false]);
  parent.close();
  await fixture.remove();
});

describe("giveBack", () => {
  let dir: ReturnType<typeof tempDir>;
  beforeEach(() => {
    dir = tempDir();
  });
  afterEach(() => dir.remove());

  test("reports an existing file at the path, and touches neither", async () => {
    writeFileSync(dir.join("from"), "mine");
    writeFileSync(dir.join("to"), "theirs");
    expect(await giveBack(dir.join("from"), dir.join("to"))).toBe(false);
    expect([readFileSync(dir.join("from"), "utf8"), readFileSync(dir.join("to"), "utf8")]).toEqual(["mine", "theirs"]);
  });

  test("throws when the file is gone", async () => {
    await expect(giveBack(dir.join("gone"), dir.join("to"))).rejects.toThrow("ENOENT");
  });

  test("removes the directory of an entry when it is empty, keeps it when it is not, and throws any other error", async () => {
    mkdirSync(dir.join("empty"));
    mkdirSync(dir.join("full/file"), { recursive: true });
    writeFileSync(dir.join("file"), "");

    await removeEntryDirectory(dir.join("empty"));
    await removeEntryDirectory(dir.join("full"));
    await removeEntryDirectory(dir.join("gone"));
    await expect(removeEntryDirectory(dir.join("file"))).rejects.toThrow("ENOTDIR");

    expect(readdirSync(dir.path).toSorted()).toEqual(["file", "full"]);
  });
});

function readIfThere(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}
