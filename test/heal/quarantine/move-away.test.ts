import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { hashOf, identify, openForReading } from "../../../src/heal/files/file-identity.ts";
import { type HeldDirectory, holdDirectory } from "../../../src/heal/files/held-directory.ts";
import type { FileState } from "../../../src/heal/journal/entry.ts";
import { moveAway, type Places, placesOf } from "../../../src/heal/quarantine/move-away.ts";
import { makeWorkshop, otherFileSystem, valueOf, type Workshop } from "../workshop.ts";

const elsewhere = otherFileSystem();

/** At which use of the file's name the move reads it, takes it away, and restores it. */
const layouts = [
  { name: "within one file system", cachesUnder: undefined, runs: true, take: 2, giveBack: 3 },
  { name: "across file systems", cachesUnder: elsewhere, runs: elsewhere !== undefined, take: 4, giveBack: 5 },
] as const;

for (const { name, cachesUnder, runs, take, giveBack } of layouts) {
  describe.runIf(runs)(`moveAway ${name}, with somebody writing at the worst moment`, () => {
    let shop: Workshop;
    let places: Places;
    let before: FileState;
    let path: string;

    beforeEach(async () => {
      shop = await makeWorkshop(cachesUnder === undefined ? {} : { cachesUnder });
      ({ path } = await shop.put("cache", "old"));
      places = placesOf(shop.stateDir, shop.newId(), path);
      const found = identify(path);
      if (found.what !== "file") throw new Error("no file");
      const handle = await openForReading(path);
      const sha256 = (await hashOf(handle, 100n)) ?? "";
      await handle.close();
      before = { ...found.identity, atimeNs: 0n, mode: 0o640, uid: 0, gid: 0, sha256 };
    });
    afterEach(() => shop.remove());

    /** The held directory, with something happening right before the n-th use of the file's name. */
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

    test("none: it is moved", async () => {
      expect(await move({})).toBe("moved");
      expect(readdirSync(shop.caches)).toEqual([]);
      expect(readFileSync(places.file, "utf8")).toBe("old");
    });

    test("a file put there just before it is taken goes back to its place", async () => {
      expect(await move({ [take]: () => replace("new") })).toBe("changed");

      expect(readdirSync(shop.caches)).toEqual(["cache"]);
      expect(readFileSync(path, "utf8")).toBe("new");
      expect(readdirSync(shop.stateDir.quarantine)).toEqual([]);
    });

    test("a file rewritten in place just before it is taken goes back to its place", async () => {
      expect(await move({ [take]: () => writeFileSync(path, "longer than it was") })).toBe("changed");

      expect(readdirSync(shop.caches)).toEqual(["cache"]);
      expect(readFileSync(path, "utf8")).toBe("longer than it was");
    });

    test("when yet another one is there by then, both are kept", async () => {
      expect(await move({ [take]: () => replace("new"), [giveBack]: () => replace("newest") })).toBe("caught");

      expect(readFileSync(path, "utf8")).toBe("newest");
      expect([places.file, join(shop.caches, places.asideName)].map(readIfThere)).toContain("new");
    });
  });
}

function readIfThere(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}
