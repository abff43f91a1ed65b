import { appendFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { undo } from "../../../src/heal/quarantine/undo.ts";
import { type HealFixture, makeHealFixture, STOP, valueOf, WHY } from "../heal-fixture.ts";
import { quarantined } from "./quarantined.ts";

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

describe("undo refuses with a next step", () => {
  test("an empty journal", async () => {
    expect(await undo(fixture, "last")).toStrictEqual({
      outcome: "refused",
      refusal: { message: "The journal names no file that is in quarantine.", next: "See unghost history." },
    });
  });

  test("an unknown id", async () => {
    expect(await undo(fixture, { id: "x" })).toEqual({
      outcome: "unknown-id",
      refusal: { message: "The journal has no entry x.", next: "See unghost history for the ids there are." },
    });
  });

  test("an entry that moved no file", async () => {
    const id = valueOf(await fixture.journal.begin({ ...WHY, action: STOP }));
    expect(await undo(fixture, { id })).toMatchObject({
      outcome: "refused",
      id,
      refusal: { next: "unghost quarantine lists what can be put back." },
    });
  });

  test.each(["refused", undefined] as const)("an entry whose move ended as %s", async (outcome) => {
    const { path, expected } = await fixture.put("cache", "old");
    const before = { ...expected, atimeNs: 0n, mode: 0, uid: 0, gid: 0, sha256: "0".repeat(64) };
    const action = { kind: "quarantine-file", path, before } as const;
    const id = valueOf(await fixture.journal.begin({ ...WHY, action }));
    if (outcome !== undefined) await fixture.journal.done(id, outcome);
    const how = outcome === undefined ? "(open)" : "(done, refused)";

    expect(await undo(fixture, { id })).toMatchObject({
      refusal: { message: expect.stringContaining(how), next: "See unghost history for entries that did." },
    });
  });

  test("a missing directory, and a file that is not the one that was moved", async () => {
    const { id, path, file } = await quarantined(fixture, "cache");
    writeFileSync(file, "other");
    expect(await undo(fixture, { id })).toMatchObject({
      refusal: { next: "Compare its sha256 with unghost history -o json, and copy it by hand if you trust it." },
    });
    rmSync(dirname(path), { recursive: true });
    expect(await undo(fixture, { id })).toMatchObject({
      refusal: { next: `Make the directory again and repeat, or take the file from ${file}.` },
    });
  });
});

describe("an entry that a newer version wrote", () => {
  const stamp = { at: "2024-01-31T10:15:30.000Z", run: "run-9", boot: "boot-1" };

  test("is refused with the path of its file, and does not affect other entries", async () => {
    const { id, path } = await quarantined(fixture, "cache");
    const newer = fixture.newId();
    const line = JSON.stringify({ event: "painted", id: newer, ...stamp });
    appendFileSync(fixture.stateDir.journal, `damage\n${line}\n`);

    expect(await undo(fixture, { id: newer })).toMatchObject({
      outcome: "refused",
      refusal: {
        message: expect.stringMatching(`${newer}.*newer version`),
        next: expect.stringContaining(join(fixture.stateDir.quarantine, newer)),
      },
    });
    const unknown = await undo(fixture, { id: fixture.newId() });
    expect(unknown).toMatchObject({ refusal: { message: expect.stringContaining("no entry") } });
    expect(unknown).not.toHaveProperty("id");
    expect(await undo(fixture, "last")).toMatchObject({ outcome: "undone", id, path });
    expect(await undo(fixture, "last")).toMatchObject({ refusal: { message: expect.stringContaining("no file") } });
  });
});
