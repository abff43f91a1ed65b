import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { JournalId } from "../../../src/heal/journal/entry.ts";
import { readHistory } from "../../../src/heal/journal/reader.ts";
import { identifyFile } from "../../../src/heal/quarantine/file-identity.ts";
import { quarantineFile } from "../../../src/heal/quarantine/quarantine.ts";
import { undo } from "../../../src/heal/quarantine/undo.ts";
import { type HealFixture, LAYOUTS, makeHealFixture, STOP, valueOf, WHY } from "../heal-fixture.ts";

for (const { name, cachesUnder, runs } of LAYOUTS) {
  describe.runIf(runs)(`undo ${name}`, () => {
    let shop: HealFixture;
    beforeEach(async () => {
      shop = await makeHealFixture(cachesUnder === undefined ? {} : { cachesUnder });
    });
    afterEach(() => shop.remove());

    async function moved(
      file: string,
      content = file,
    ): Promise<{ readonly id: JournalId; readonly path: string; readonly quarantinedTo: string }> {
      const { path } = await shop.put(file, content);
      chmodSync(path, 0o604);
      utimesSync(path, 1_600_000_000.25, 1_500_000_000.5);
      const expected = valueOf(await identifyFile("/", path));
      const outcome = await quarantineFile(shop, { ...WHY, path, expected });
      if (outcome.outcome !== "healed") throw new Error(outcome.refusal.message);
      return { ...outcome, path, quarantinedTo: join(shop.stateDir.quarantine, outcome.id, file) };
    }

    async function stateOf(id: JournalId): Promise<string | undefined> {
      return (await readHistory(shop.stateDir.journal)).records.find((record) => record.id === id)?.state;
    }

    test("restores the file with its attributes, and leaves nothing behind", async () => {
      const { id, path } = await moved("cache");

      expect(await undo(shop, { id })).toEqual({ outcome: "undone", id, path });

      const after = lstatSync(path);
      expect(readFileSync(path, "utf8")).toBe("cache");
      expect([after.mode & 0o7777, after.mtimeMs]).toEqual([0o604, 1_500_000_000_500]);
      expect(readdirSync(shop.caches)).toEqual(["cache"]);
      expect(readdirSync(shop.stateDir.quarantine)).toEqual([]);
      expect(await stateOf(id)).toBe("undone");
    });

    test("a second undo changes nothing", async () => {
      const { id, path } = await moved("cache");
      await undo(shop, { id });
      const lines = readFileSync(shop.stateDir.journal, "utf8");

      expect(await undo(shop, { id })).toEqual({ outcome: "already-undone", id, path });
      expect(readFileSync(shop.stateDir.journal, "utf8")).toBe(lines);
    });

    test("`last` undoes the entries in reverse order", async () => {
      const first = await moved("one");
      const second = await moved("two");
      valueOf(await shop.journal.begin({ ...WHY, action: STOP }));

      expect(await undo(shop, "last")).toMatchObject({ outcome: "undone", id: second.id });
      expect(await undo(shop, "last")).toMatchObject({ outcome: "undone", id: first.id });
      expect(await undo(shop, "last")).toMatchObject({ outcome: "refused" });
    });

    test.each([
      ["a newer file", (path: string) => writeFileSync(path, "newer")],
      ["an empty file", (path: string) => writeFileSync(path, "")],
      ["a directory", (path: string) => mkdirSync(path)],
      ["a symbolic link into nothing", (path: string) => symlinkSync("/nowhere", path)],
    ])("refuses when %s is at the path, and touches neither", async (_name, arrange) => {
      const { id, path, quarantinedTo } = await moved("cache");
      arrange(path);
      const before = lstatSync(path);
      const lines = readFileSync(shop.stateDir.journal, "utf8");

      const outcome = await undo(shop, { id });

      expect(outcome).toMatchObject({
        outcome: "refused",
        refusal: { message: expect.stringContaining("something newer is there") as unknown },
      });
      expect(lstatSync(path).ino).toBe(before.ino);
      expect(readFileSync(shop.stateDir.journal, "utf8")).toBe(lines);
      expect(readFileSync(quarantinedTo, "utf8")).toBe("cache");
      expect(await stateOf(id)).toBe("done");
    });

    test.each([
      ["changed", (file: string) => writeFileSync(file, "CACHE")],
      ["removed", (file: string) => rmSync(file)],
      ["replaced by a link", (file: string) => (rmSync(file), symlinkSync("/etc/hostname", file))],
    ])("refuses when the file in quarantine was %s", async (_name, change) => {
      const { id, quarantinedTo } = await moved("cache");
      change(quarantinedTo);

      expect(await undo(shop, { id })).toMatchObject({
        outcome: "refused",
        refusal: { message: expect.stringContaining("differs from the file that the journal recorded") as unknown },
      });
      expect(readdirSync(shop.caches)).toEqual([]);
    });

    test("refuses while the directory is missing, and works once it exists again", async () => {
      const { id, path } = await moved("cache");
      renameSync(shop.caches, `${shop.caches}.away`);

      expect(await undo(shop, { id })).toMatchObject({
        outcome: "refused",
        refusal: { message: expect.stringContaining("is gone") as unknown },
      });

      renameSync(`${shop.caches}.away`, shop.caches);
      expect(await undo(shop, { id })).toEqual({ outcome: "undone", id, path });
    });
  });
}

describe("undo messages", () => {
  let shop: HealFixture;
  beforeEach(async () => {
    shop = await makeHealFixture();
  });
  afterEach(() => shop.remove());

  test("names an entry that does not exist", async () => {
    expect(await undo(shop, { id: "../../etc" })).toMatchObject({
      outcome: "refused",
      refusal: { message: "The journal has no entry ../../etc." },
    });
  });

  test("names an entry that cannot be undone", async () => {
    const id = valueOf(await shop.journal.begin({ ...WHY, action: STOP }));
    await shop.journal.done(id, "healed");

    expect(await undo(shop, { id })).toMatchObject({
      outcome: "refused",
      id,
      refusal: { message: expect.stringContaining("(stop-sandbox) cannot be undone") as unknown },
    });
  });

  test("reports that a refused move left nothing to put back", async () => {
    const { path, expected } = await shop.put("cache", "content");
    const entry = await shop.journal.begin({
      ...WHY,
      action: {
        kind: "quarantine-file",
        path: join(path),
        before: { ...expected, atimeNs: 0n, mode: 0o600, uid: 0, gid: 0, sha256: "0".repeat(64) },
      },
    });
    await shop.journal.done(valueOf(entry), "refused");

    expect(await undo(shop, { id: valueOf(entry) })).toMatchObject({
      outcome: "refused",
      refusal: { message: expect.stringContaining("left nothing in quarantine") as unknown },
    });
  });
});
