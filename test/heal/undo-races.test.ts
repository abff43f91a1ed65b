import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { readHistory } from "../../src/heal/history.ts";
import { refuse } from "../../src/heal/outcome.ts";
import { quarantineFile } from "../../src/heal/quarantine.ts";
import { undo } from "../../src/heal/undo.ts";
import { makeWorkshop, STOP, valueOf, WHY, type Workshop } from "./workshop.ts";

let shop: Workshop;
beforeEach(async () => {
  shop = await makeWorkshop();
});
afterEach(() => shop.remove());

async function moved(name: string) {
  const { path, expected } = await shop.put(name, name);
  const outcome = await quarantineFile(shop, { ...WHY, path, expected });
  if (outcome.outcome !== "healed") throw new Error(outcome.refusal.message);
  return { path, id: outcome.id, file: outcome.quarantinedTo };
}

/** Something happens after the undo was announced and before it is made. */
function meanwhile(happens: () => void): void {
  const { journal } = shop;
  const undoing = journal.undoing.bind(journal);
  vi.spyOn(journal, "undoing").mockImplementation(async (id) => {
    const announced = await undoing(id);
    happens();
    return announced;
  });
}

async function stateOf(id: string) {
  await shop.journal.close();
  return (await readHistory(shop.stateDir.journal)).records.find((record) => record.id === id);
}

test("the entry that is named is undone, and no other", async () => {
  const [first, second] = [await moved("first"), await moved("second")];

  expect(await undo(shop, { id: second.id })).toEqual({ outcome: "undone", id: second.id, path: second.path });

  expect([readFileSync(second.path, "utf8"), readFileSync(first.file, "utf8")]).toEqual(["second", "first"]);
});

describe("what happens while a file is put back", () => {
  test("a newer file that appears stays, and the old one stays in quarantine", async () => {
    const { id, path, file } = await moved("cache");
    meanwhile(() => writeFileSync(path, "newer"));

    expect(await undo(shop, { id })).toEqual({
      outcome: "refused",
      id,
      refusal: {
        message: expect.stringContaining("something newer is there"),
        next: `Move it away first if you want the old one, which stays in ${file}.`,
      },
    });
    expect([readFileSync(path, "utf8"), readFileSync(file, "utf8")]).toEqual(["newer", "cache"]);
    expect(await stateOf(id)).toMatchObject({ state: "done", outcome: "healed" });
  });

  test("a directory that is renamed is the one it goes back to", async () => {
    const { id, path, file } = await moved("cache");
    const parent = dirname(path);
    meanwhile(() => renameSync(parent, `${parent}.gone`));

    const outcome = await undo(shop, { id });

    renameSync(`${parent}.gone`, parent);
    expect(outcome).toMatchObject({ outcome: "undone", id });
    expect([readFileSync(path, "utf8"), existsSync(file)]).toEqual(["cache", false]);
  });

  test("a quarantine that is damaged is a failure that says what to do", async () => {
    const { id, file } = await moved("cache");
    const entry = dirname(file);
    meanwhile(() => {
      rmSync(file);
      mkdirSync(file);
      writeFileSync(join(file, "x"), "");
    });

    expect(await undo(shop, { id })).toMatchObject({
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

  test("a journal that takes no entry keeps it in quarantine", async () => {
    const { id, file } = await moved("cache");
    vi.spyOn(shop.journal, "undoing").mockResolvedValue(refuse("The disk is full.", "Free some space."));

    expect(await undo(shop, { id })).toEqual({
      outcome: "refused",
      id,
      refusal: { message: "The disk is full.", next: "Free some space." },
    });
    expect(readFileSync(file, "utf8")).toBe("cache");
  });

  test("a link in the place of its directory is not followed", async () => {
    const { id, path, file } = await moved("cache");
    const parent = dirname(path);
    renameSync(parent, `${parent}.real`);
    symlinkSync(`${parent}.real`, parent);

    expect(await undo(shop, { id })).toMatchObject({ outcome: "refused", id });
    expect(readFileSync(file, "utf8")).toBe("cache");
  });
});

describe("what cannot be undone says what to do next", () => {
  test("an empty journal", async () => {
    expect(await undo(shop, "last")).toEqual({
      outcome: "refused",
      refusal: { message: "The journal names no file that is in quarantine.", next: "See unghost history." },
    });
  });

  test("an id that is not there", async () => {
    expect(await undo(shop, { id: "x" })).toEqual({
      outcome: "refused",
      refusal: { message: "The journal has no entry x.", next: "See unghost history for the ids there are." },
    });
  });

  test("an entry that moved no file", async () => {
    const id = valueOf(await shop.journal.begin({ ...WHY, action: STOP }));
    expect(await undo(shop, { id })).toMatchObject({
      outcome: "refused",
      id,
      refusal: { next: "See unghost history for entries that can." },
    });
  });

  test.each(["refused", undefined] as const)("an entry whose move ended as %s", async (outcome) => {
    const { path, expected } = await shop.put("cache", "old");
    const before = { ...expected, atimeNs: 0n, mode: 0, uid: 0, gid: 0, sha256: "0".repeat(64) };
    const action = { kind: "quarantine-file", path, before } as const;
    const id = valueOf(await shop.journal.begin({ ...WHY, action }));
    if (outcome !== undefined) await shop.journal.done(id, outcome);
    const how = outcome === undefined ? "(open)" : "(done, refused)";

    expect(await undo(shop, { id })).toMatchObject({
      refusal: { message: expect.stringContaining(how), next: "See unghost history for entries that did." },
    });
  });

  test("a directory that is gone, and a file that is not what was moved", async () => {
    const { id, path, file } = await moved("cache");
    writeFileSync(file, "other");
    expect(await undo(shop, { id })).toMatchObject({
      refusal: { next: "Compare its sha256 with unghost history -o json, and copy it by hand if you trust it." },
    });
    rmSync(dirname(path), { recursive: true });
    expect(await undo(shop, { id })).toMatchObject({
      refusal: { next: `Make the directory again and repeat, or take the file from ${file}.` },
    });
  });
});
