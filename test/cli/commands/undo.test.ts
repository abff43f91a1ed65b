import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runUndo, type UndoOptions } from "../../../src/cli/commands/undo.ts";
import { quarantineFile } from "../../../src/heal/quarantine/quarantine.ts";
import { acquireRunLock, ownIdentity } from "../../../src/heal/state/run-lock.ts";
import { type HealFixture, makeHealFixture, STOP, steadyRandom, valueOf, WHY } from "../../heal/heal-fixture.ts";

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

async function runIt(changes: Partial<UndoOptions> = {}) {
  let stdout = "";
  let stderr = "";
  const io = { stdout: (text: string) => void (stdout += text), stderr: (text: string) => void (stderr += text) };
  const options: UndoOptions = {
    stateDir: fixture.stateDir.root,
    hostRoot: "/",
    uid: process.getuid?.() ?? 0,
    own: ownIdentity(),
    clock: () => new Date(Date.UTC(2024, 1, 1)),
    random: steadyRandom(7),
    lockWaitMs: 0,
    output: "table",
    target: "last",
    ...changes,
  };
  return { code: await runUndo(options, io), stdout, stderr };
}

describe("runUndo", () => {
  test("puts the file back, and a second undo changes nothing", async () => {
    const { path, expected } = await fixture.put("cache", "content");
    const moved = await quarantineFile(fixture, { ...WHY, path, expected });
    const id = moved.id ?? "";

    const was = expect.stringMatching(/^ {2}It was 7 bytes, moved \S+ for result-cache-corrupt\.$/);
    const shown = (stdout: string) => stdout.trimEnd().split("\n");

    const preview = await runIt({ target: { id }, dryRun: true });
    expect([preview.code, existsSync(path)]).toEqual([0, false]);
    expect(shown(preview.stdout)).toEqual([
      `${path} would be restored (${id})`,
      was,
      expect.stringContaining("the next scan finds it again"),
      "Dry run: nothing was changed.",
    ]);
    const { code, stdout } = await runIt();
    expect([code, shown(stdout).slice(0, 2)]).toEqual([0, [`${path} restored (${id})`, was]]);
    expect(readFileSync(path, "utf8")).toBe("content");
    const again = await runIt({ target: { id } });
    expect([again.code, shown(again.stdout)]).toEqual([0, [`${path} was restored before (${id})`, was]]);
  });

  test("exits 3 when a newer file is at the path", async () => {
    const { path, expected } = await fixture.put("cache", "content");
    await quarantineFile(fixture, { ...WHY, path, expected });
    writeFileSync(path, "newer");

    const preview = await runIt({ dryRun: true });
    const { code, stderr } = await runIt();

    expect([preview.code, preview.stderr]).toEqual([3, stderr]);
    expect(code).toBe(3);
    expect(stderr).toContain(`${path} was not put back: something newer is there.`);
    expect(readFileSync(path, "utf8")).toBe("newer");
  });

  test("closes the open entries of an earlier run first, and reports it", async () => {
    await fixture.journal.begin({ ...WHY, action: STOP });

    const { stderr } = await runIt();

    expect(stderr).toMatch(/An earlier run was interrupted at stop-sandbox \(.{14}\): interrupted\./);
  });

  test("exits 3 while another run holds the lock", async () => {
    const lock = valueOf(await acquireRunLock({ path: fixture.stateDir.lock, own: ownIdentity(), waitMs: 0 }));

    const { code, stderr } = await runIt();

    lock.release();
    expect(code).toBe(3);
    expect(stderr).toContain("Another unghost run is under way");
  });

  test("prints JSON", async () => {
    const { code, stdout } = await runIt({ output: "json" });

    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({ apiVersion: "unghost.dev/v1", kind: "Undo", outcome: "refused" });
  });

  test("does not create a missing state directory", async () => {
    const stateDir = join(fixture.caches, "none");

    expect((await runIt({ stateDir })).code).toBe(3);
    expect(existsSync(stateDir)).toBe(false);
  });
});
