import { chmodSync, chownSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findStateDir, openStateDir } from "../../../src/heal/state/state-dir.ts";

const uid = process.getuid?.() ?? 0;
let root: string;
let state: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "unghost-state-"));
  state = join(root, "deep", "unghost");
});

afterEach(() => rmSync(root, { recursive: true }));

describe("openStateDir", () => {
  test("creates the directory and its quarantine with mode 0700", async () => {
    const opened = await openStateDir(state, uid);

    expect(opened).toMatchObject({ ok: true, value: { root: state, journal: join(state, "journal") } });
    expect(lstatSync(state).mode & 0o777).toBe(0o700);
    expect(lstatSync(join(state, "quarantine")).mode & 0o777).toBe(0o700);
  });

  test("accepts an existing directory, and removes the access of others", async () => {
    mkdirSync(state, { recursive: true, mode: 0o755 });

    expect((await openStateDir(state, uid)).ok).toBe(true);
    expect(lstatSync(state).mode & 0o777).toBe(0o700);
  });

  test.each([
    ["a symbolic link", () => symlinkSync(root, state), /symbolic link/],
    ["a file", () => writeFileSync(state, ""), /not a directory/],
    ["writable by others", () => (mkdirSync(state), chmodSync(state, 0o777)), /written by others \(mode 777\)/],
    [
      "a directory with a quarantine that is a symbolic link",
      () => (mkdirSync(state), symlinkSync(root, join(state, "quarantine"))),
      /quarantine is a symbolic link/,
    ],
  ])("refuses %s", async (_name, arrange, sentence) => {
    mkdirSync(join(root, "deep"));
    arrange();

    const opened = await openStateDir(state, uid);

    expect(opened.ok).toBe(false);
    expect(!opened.ok && opened.refusal.message).toMatch(sentence);
  });

  test.runIf(uid === 0)("refuses a directory of another user", async () => {
    mkdirSync(state, { recursive: true });
    chownSync(state, 12345, 12345);

    const opened = await openStateDir(state, uid);

    expect(!opened.ok && opened.refusal.message).toMatch(/belongs to user 12345, but unghost runs as user 0/);
  });
});

describe("findStateDir", () => {
  test("does not create a missing directory", async () => {
    expect(await findStateDir(state, uid)).toEqual({ ok: true, value: undefined });
    expect(lstatSync(state, { throwIfNoEntry: false })).toBeUndefined();
  });

  test("refuses a symbolic link", async () => {
    mkdirSync(join(root, "deep"));
    symlinkSync(root, state);

    expect((await findStateDir(state, uid)).ok).toBe(false);
  });
});
