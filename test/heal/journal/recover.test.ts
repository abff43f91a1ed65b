import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { identify } from "../../../src/heal/files/file-identity.ts";
import type { JournalAction, JournalId } from "../../../src/heal/journal/entry.ts";
import { readHistory } from "../../../src/heal/journal/history.ts";
import { recoverOpenEntries } from "../../../src/heal/journal/recover.ts";
import { placesOf } from "../../../src/heal/quarantine/move-away.ts";
import { makeWorkshop, STOP, valueOf, WHY, type Workshop } from "../workshop.ts";

const CONTENT = "half a cache";

/** Where the pieces of one entry lie; each case arranges them as a kill at one moment would leave them. */
interface Scene {
  readonly original: string;
  readonly aside: string;
  readonly kept: string;
}

let shop: Workshop;
beforeEach(async () => {
  shop = await makeWorkshop();
});
afterEach(() => shop.remove());

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

async function startedQuarantine(): Promise<{ readonly id: JournalId; readonly scene: Scene }> {
  const { path } = await shop.put("cache", CONTENT);
  const found = identify(path);
  if (found.what !== "file") throw new Error("no file");
  const before = { ...found.identity, atimeNs: 0n, mode: 0o640, uid: 0, gid: 0, sha256: sha256(CONTENT) };
  const id = valueOf(await shop.journal.begin({ ...WHY, action: { kind: "quarantine-file", path, before } }));
  const places = placesOf(shop.stateDir, id, path);
  return { id, scene: { original: path, aside: join(shop.caches, places.asideName), kept: places.file } };
}

function withDirectory(arrange: (scene: Scene) => void): (scene: Scene) => void {
  return (scene) => {
    mkdirSync(dirname(scene.kept));
    arrange(scene);
  };
}

describe("an interrupted quarantine", () => {
  const cases: readonly (readonly [
    string,
    (scene: Scene) => void,
    { how: string; state: string; original?: string; kept?: string; aside?: string },
  ])[] = [
    ["before anything", () => undefined, { how: "rolled-back", state: "rolled-back", original: CONTENT }],
    [
      "with its directory made",
      withDirectory(() => undefined),
      { how: "rolled-back", state: "rolled-back", original: CONTENT },
    ],
    [
      "after the rename",
      withDirectory(({ original, kept }) => renameSync(original, kept)),
      { how: "completed", state: "done", kept: CONTENT },
    ],
    [
      "after the rename, and a new file is at its place",
      withDirectory(({ original, kept }) => (renameSync(original, kept), writeFileSync(original, "new"))),
      { how: "completed", state: "done", kept: CONTENT, original: "new" },
    ],
    [
      "half copied",
      withDirectory(({ kept }) => writeFileSync(kept, CONTENT.slice(0, 4))),
      { how: "rolled-back", state: "rolled-back", original: CONTENT },
    ],
    [
      "wholly copied, the original still there",
      withDirectory(({ original, kept }) => copyFileSync(original, kept)),
      { how: "rolled-back", state: "rolled-back", original: CONTENT },
    ],
    [
      "copied, the original taken aside",
      withDirectory(({ original, kept, aside }) => (copyFileSync(original, kept), renameSync(original, aside))),
      { how: "completed", state: "done", kept: CONTENT },
    ],
    [
      "copied, the original gone",
      withDirectory(({ original, kept }) => (copyFileSync(original, kept), unlinkSync(original))),
      { how: "completed", state: "done", kept: CONTENT },
    ],
    [
      "taken aside, the copy lost",
      withDirectory(({ original, aside }) => renameSync(original, aside)),
      { how: "rolled-back", state: "rolled-back", original: CONTENT },
    ],
    [
      "given back by link, not yet unlinked in quarantine",
      withDirectory(({ original, kept }) => linkSync(original, kept)),
      { how: "rolled-back", state: "rolled-back", original: CONTENT },
    ],
    [
      "not moved, and rewritten since",
      ({ original }) => writeFileSync(original, "rewritten"),
      { how: "rolled-back", state: "rolled-back", original: "rewritten" },
    ],
    ["the file in neither place", ({ original }) => unlinkSync(original), { how: "lost", state: "lost" }],
    [
      "its directory gone, as a tmpfs is after a reboot",
      ({ original }) => rmSync(dirname(original), { recursive: true }),
      { how: "lost", state: "lost" },
    ],
    [
      "something else in quarantine, nothing at its place",
      withDirectory(({ original, kept }) => (unlinkSync(original), writeFileSync(kept, "stranger"))),
      { how: "lost", state: "lost", kept: "stranger" },
    ],
    [
      "something else in quarantine, something else at its place",
      withDirectory(({ original, kept }) => (writeFileSync(original, "new one"), writeFileSync(kept, "stranger"))),
      { how: "interrupted", state: "interrupted", original: "new one", kept: "stranger" },
    ],
  ];

  test.each(cases)("%s", async (_name, arrange, expected) => {
    const { id, scene } = await startedQuarantine();
    arrange(scene);

    const recoveries = await recoverOpenEntries(shop);

    expect(recoveries).toMatchObject([{ id, kind: "quarantine-file", how: expected.how }]);
    for (const place of ["original", "kept", "aside"] as const) {
      expect([place, contentOf(scene[place])]).toEqual([place, expected[place]]);
    }
    expect(readdirSync(shop.stateDir.quarantine)).toHaveLength(expected.kept === undefined ? 0 : 1);
    expect((await readHistory(shop.stateDir.journal)).records).toMatchObject([{ id, state: expected.state }]);
    expect(await recoverOpenEntries(shop)).toEqual([]);
  });

  test("stays open when its directory cannot be walked to", async () => {
    const { id, scene } = await startedQuarantine();
    renameSync(shop.caches, `${shop.caches}.real`);
    symlinkSync(`${shop.caches}.real`, shop.caches);

    expect(await recoverOpenEntries(shop)).toMatchObject([{ id, how: "unsettled" }]);
    expect(contentOf(scene.original)).toBe(CONTENT);
    expect((await readHistory(shop.stateDir.journal)).records).toMatchObject([{ state: "open" }]);
  });
});

describe("an interrupted undo", () => {
  const cases: readonly (readonly [string, (scene: Scene) => void, { state: string; back: boolean; kept: boolean }])[] =
    [
      ["before anything", () => undefined, { state: "done", back: false, kept: true }],
      [
        "linked back, still in quarantine",
        ({ original, kept }) => linkSync(kept, original),
        { state: "undone", back: true, kept: false },
      ],
      [
        "back, not confirmed",
        ({ original, kept }) => renameSync(kept, original),
        { state: "undone", back: true, kept: false },
      ],
      [
        "half copied beside its place",
        ({ aside }) => writeFileSync(aside, "ha"),
        { state: "done", back: false, kept: true },
      ],
      [
        "copied back, still in quarantine",
        ({ original, kept, aside }) => (copyFileSync(kept, aside), linkSync(aside, original)),
        { state: "undone", back: true, kept: false },
      ],
    ];

  test.each(cases)("%s", async (_name, arrange, { state, back, kept }) => {
    const { id, scene } = await startedQuarantine();
    mkdirSync(dirname(scene.kept));
    renameSync(scene.original, scene.kept);
    await shop.journal.done(id, "healed");
    await shop.journal.undoing(id);
    arrange(scene);

    await recoverOpenEntries(shop);

    expect((await readHistory(shop.stateDir.journal)).records).toMatchObject([{ id, state }]);
    expect(contentOf(scene.original)).toBe(back ? CONTENT : undefined);
    expect(contentOf(scene.kept)).toBe(kept ? CONTENT : undefined);
    expect(existsSync(scene.aside)).toBe(false);
  });
});

describe("an interrupted marker", () => {
  const cases: readonly (readonly [string, (path: string) => void, string, string | undefined])[] = [
    ["is removed when it still is ours", (path) => writeFileSync(path, "marker"), "rolled-back", undefined],
    ["was never written", () => undefined, "rolled-back", undefined],
    ["stays when somebody rewrote it", (path) => writeFileSync(path, "[delegates]"), "interrupted", "[delegates]"],
  ];

  test.each(cases)("%s", async (_name, arrange, how, left) => {
    const path = join(shop.caches, "f".repeat(64));
    arrange(path);
    await shop.journal.begin({ ...WHY, action: { kind: "write-marker", path, sha256: sha256("marker") } });

    expect(await recoverOpenEntries(shop)).toMatchObject([{ kind: "write-marker", how }]);
    expect(contentOf(path)).toBe(left);
  });

  test("is not followed when it became a symbolic link", async () => {
    const { path: precious } = await shop.put("precious", "marker");
    const path = join(shop.caches, "f".repeat(64));
    symlinkSync(precious, path);
    await shop.journal.begin({ ...WHY, action: { kind: "write-marker", path, sha256: sha256("marker") } });

    expect(await recoverOpenEntries(shop)).toMatchObject([{ how: "interrupted" }]);
    expect(contentOf(precious)).toBe("marker");
  });
});

describe("any other interrupted action", () => {
  const sandboxId = "f".repeat(64);
  const actions: readonly JournalAction[] = [
    STOP,
    { kind: "remove-sandbox", sandboxId },
    { kind: "end-process", pid: 1, startedSecondsAfterBoot: 0.5 },
    { kind: "release-address", network: "cbr0", address: "10.0.0.7", owner: sandboxId },
    { kind: "remove-netns", path: "/run/netns/cni-1" },
    { kind: "delete-lease", lease: sandboxId },
    { kind: "save-logs", sandboxId, paths: ["/var/log/pods/a/b/0.log"] },
  ];

  test.each(actions)("$kind is closed as interrupted", async (action) => {
    await shop.journal.begin({ ...WHY, action });

    expect(await recoverOpenEntries(shop)).toMatchObject([{ kind: action.kind, how: "interrupted" }]);
    expect((await readHistory(shop.stateDir.journal)).records).toMatchObject([{ action, state: "interrupted" }]);
  });
});

function contentOf(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}
