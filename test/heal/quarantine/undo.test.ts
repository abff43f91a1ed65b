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
import { previewUndo, undo } from "../../../src/heal/quarantine/undo.ts";
import { type HealFixture, LAYOUTS, makeHealFixture, STOP, valueOf, WHY } from "../heal-fixture.ts";

for (const { name, cachesUnder, runs } of LAYOUTS) {
  describe.runIf(runs)(`undo ${name}`, () => {
    let fixture: HealFixture;
    beforeEach(async () => {
      fixture = await makeHealFixture(cachesUnder === undefined ? {} : { cachesUnder });
    });
    afterEach(() => fixture.remove());

    async function moved(
      file: string,
      content = file,
    ): Promise<{ readonly id: JournalId; readonly path: string; readonly quarantinedTo: string }> {
      const { path } = await fixture.put(file, content);
      chmodSync(path, 0o604);
      utimesSync(path, 1_600_000_000.25, 1_500_000_000.5);
      const expected = valueOf(await identifyFile("/", path));
      const outcome = await quarantineFile(fixture, { ...WHY, path, expected });
      if (outcome.outcome !== "healed") throw new Error(outcome.refusal.message);
      return { ...outcome, path, quarantinedTo: join(fixture.stateDir.quarantine, outcome.id, file) };
    }

    async function stateOf(id: JournalId): Promise<string | undefined> {
      return (await readHistory(fixture.stateDir.journal)).records.find((record) => record.id === id)?.state;
    }

    test("restores the file with its attributes, and leaves nothing behind", async () => {
      const { id, path } = await moved("cache");

      expect(await undo(fixture, { id })).toMatchObject({ outcome: "undone", id, path });

      const after = lstatSync(path);
      expect(readFileSync(path, "utf8")).toBe("cache");
      expect([after.mode & 0o7777, after.mtimeMs]).toEqual([0o604, 1_500_000_000_500]);
      expect(readdirSync(fixture.caches)).toEqual(["cache"]);
      expect(readdirSync(fixture.stateDir.quarantine)).toEqual([]);
      expect(await stateOf(id)).toBe("undone");
    });

    test("a preview reports the same without a change, or why it would be refused", async () => {
      const { id, path, quarantinedTo } = await moved("cache");
      const lines = readFileSync(fixture.stateDir.journal, "utf8");

      expect(await previewUndo(fixture, { id })).toMatchObject({
        outcome: "would-undo",
        id,
        path,
        was: { class: WHY.class, finding: WHY.finding, bytes: "5" },
      });
      expect(await previewUndo(fixture, { id: "x" })).toMatchObject({ outcome: "unknown-id" });
      writeFileSync(path, "newer");
      expect(await previewUndo(fixture, { id })).toMatchObject({ outcome: "refused", id });
      renameSync(fixture.caches, `${fixture.caches}.away`);
      expect(await previewUndo(fixture, { id })).toMatchObject({ outcome: "refused", id });
      renameSync(`${fixture.caches}.away`, fixture.caches);

      expect(readFileSync(path, "utf8")).toBe("newer");
      expect(readFileSync(quarantinedTo, "utf8")).toBe("cache");
      expect(readFileSync(fixture.stateDir.journal, "utf8")).toBe(lines);
    });

    test("a second undo changes nothing", async () => {
      const { id, path } = await moved("cache");
      await undo(fixture, { id });
      const lines = readFileSync(fixture.stateDir.journal, "utf8");

      expect(await undo(fixture, { id })).toMatchObject({ outcome: "already-undone", id, path });
      expect(readFileSync(fixture.stateDir.journal, "utf8")).toBe(lines);
    });

    test("`last` undoes the entries in reverse order", async () => {
      const first = await moved("one");
      const second = await moved("two");
      valueOf(await fixture.journal.begin({ ...WHY, action: STOP }));

      expect(await undo(fixture, "last")).toMatchObject({ outcome: "undone", id: second.id });
      expect(await undo(fixture, "last")).toMatchObject({ outcome: "undone", id: first.id });
      expect(await undo(fixture, "last")).toMatchObject({ outcome: "refused" });
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
      const lines = readFileSync(fixture.stateDir.journal, "utf8");

      const outcome = await undo(fixture, { id });

      expect(outcome).toMatchObject({
        outcome: "refused",
        refusal: { message: expect.stringContaining("something newer is there") as unknown },
      });
      expect(lstatSync(path).ino).toBe(before.ino);
      expect(readFileSync(fixture.stateDir.journal, "utf8")).toBe(lines);
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

      expect(await undo(fixture, { id })).toMatchObject({
        outcome: "refused",
        refusal: { message: expect.stringContaining("differs from the file that the journal recorded") as unknown },
      });
      expect(readdirSync(fixture.caches)).toEqual([]);
    });

    test("refuses while the directory is missing, and works once it exists again", async () => {
      const { id, path } = await moved("cache");
      renameSync(fixture.caches, `${fixture.caches}.away`);

      expect(await undo(fixture, { id })).toMatchObject({
        outcome: "refused",
        refusal: { message: expect.stringContaining("is gone") as unknown },
      });

      renameSync(`${fixture.caches}.away`, fixture.caches);
      expect(await undo(fixture, { id })).toMatchObject({ outcome: "undone", id, path });
    });
  });
}

describe("undo messages", () => {
  let fixture: HealFixture;
  beforeEach(async () => {
    fixture = await makeHealFixture();
  });
  afterEach(() => fixture.remove());

  test("names the pod that the file belonged to, if it belonged to one", async () => {
    const pod = { namespace: "shop", name: "web-0", uid: "u", attempt: 0 };
    const subject = { type: "file", path: "/x", pod } as const;
    const ofPod = await quarantineFile(fixture, { ...WHY, subject, ...(await fixture.put("one", "one")) });
    const ofNone = await quarantineFile(fixture, { ...WHY, ...(await fixture.put("two", "two")) });
    if (ofPod.outcome !== "healed" || ofNone.outcome !== "healed") throw new Error("not moved");

    expect(await undo(fixture, { id: ofPod.id })).toHaveProperty("was.pod", "shop/web-0");
    expect(await undo(fixture, { id: ofNone.id })).toHaveProperty("was.pod", undefined);
  });

  test("names an entry that does not exist", async () => {
    expect(await undo(fixture, { id: "../../etc" })).toMatchObject({
      outcome: "unknown-id",
      refusal: { message: "The journal has no entry ../../etc." },
    });
  });

  test("names an entry that cannot be undone", async () => {
    const id = valueOf(await fixture.journal.begin({ ...WHY, action: STOP }));
    await fixture.journal.done(id, "healed");

    expect(await undo(fixture, { id })).toMatchObject({
      outcome: "refused",
      id,
      refusal: { message: expect.stringContaining("(stop-sandbox) cannot be undone") as unknown },
    });
  });

  test("reports that a refused move left nothing to put back", async () => {
    const { path, expected } = await fixture.put("cache", "content");
    const entry = await fixture.journal.begin({
      ...WHY,
      action: {
        kind: "quarantine-file",
        path: join(path),
        before: { ...expected, atimeNs: 0n, mode: 0o600, uid: 0, gid: 0, sha256: "0".repeat(64) },
      },
    });
    await fixture.journal.done(valueOf(entry), "refused");

    expect(await undo(fixture, { id: valueOf(entry) })).toMatchObject({
      outcome: "refused",
      refusal: { message: expect.stringContaining("left nothing in quarantine") as unknown },
    });
  });
});
