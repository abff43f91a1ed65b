import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type KeeperState, publishedKeeper, publishKeeper } from "../../src/durable/keeper-state.ts";
import { scratchDir } from "./scratch-dir.ts";

const STATE: KeeperState = {
  directories: 4,
  filesSynced: 120,
  waiting: 1,
  syncingSeconds: 0.5,
  problems: [
    { kind: "unsynced", dir: "/var/lib/cni/results", code: "EIO" },
    { kind: "too-many", kept: 256 },
  ],
};

function publish(root: string): { close(): void } {
  const published = publishKeeper(root, { state: () => STATE });
  onTestFinished(() => published.close());
  return published;
}

// doctor trusts only files of root.
describe.skipIf(process.getuid?.() !== 0)("keeper state file (needs root)", () => {
  test("is read by others while the keeper runs, and not after its end", () => {
    const root = scratchDir();
    expect(publishedKeeper(root)).toBeUndefined();

    const published = publish(root);
    expect(publishedKeeper(root)).toEqual(STATE);

    published.close();
    expect(publishedKeeper(root)).toBeUndefined();
  });

  test("is ignored when it is old, incomplete, or writable by others", () => {
    const root = scratchDir();
    publish(root);
    const file = join(root, "run/unghost/keeper.json");
    const minuteAgo = Date.now() / 1000 - 60;

    utimesSync(file, minuteAgo, minuteAgo);
    expect(publishedKeeper(root)).toBeUndefined();
    writeFileSync(file, `{"directories": 4}`);
    expect(publishedKeeper(root)).toBeUndefined();
    writeFileSync(file, JSON.stringify(STATE));
    expect(publishedKeeper(root)).toEqual(STATE);
    chmodSync(file, 0o666);
    expect(publishedKeeper(root)).toBeUndefined();
  });

  test("is not written into a directory that others can write", () => {
    const root = scratchDir();
    mkdirSync(join(root, "run/unghost"), { recursive: true });
    chmodSync(join(root, "run/unghost"), 0o777);

    publish(root);

    expect(readdirSync(join(root, "run/unghost"))).toEqual([]);
  });

  test("replaces a link at its path, and does not touch the link's target", () => {
    const root = scratchDir();
    const outside = join(scratchDir(), "outside");
    mkdirSync(join(root, "run/unghost"), { recursive: true, mode: 0o700 });
    symlinkSync(outside, join(root, "run/unghost/keeper.json"));

    publish(root);

    expect(publishedKeeper(root)).toEqual(STATE);
    expect(existsSync(outside)).toBe(false);
  });
});
