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
import type { JournalAction } from "../../../src/evidence/step.ts";
import type { JournalId } from "../../../src/heal/journal/entry.ts";
import { readHistory } from "../../../src/heal/journal/reader.ts";
import { identify } from "../../../src/heal/quarantine/file-identity.ts";
import { placesOf } from "../../../src/heal/quarantine/move-away.ts";
import { recoverOpenEntries } from "../../../src/heal/quarantine/recover.ts";
import { diskError, withFileSystem } from "../../support/failing-fs.ts";
import { heldOpenBelow } from "../../support/held-open.ts";
import { type HealFixture, makeHealFixture, STOP, valueOf, WHY } from "../heal-fixture.ts";

const CONTENT = "half a cache";
const FORCED = { recursive: true, force: true } as const;

/** The files of one entry; each case arranges them as after a kill at one moment. */
interface Scene {
  readonly original: string;
  readonly aside: string;
  readonly kept: string;
}

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

async function startedQuarantine(): Promise<{ readonly id: JournalId; readonly scene: Scene }> {
  const { path } = await fixture.put("cache", CONTENT);
  const found = identify(path);
  if (found.what !== "file") throw new Error("no file");
  const before = { ...found.identity, atimeNs: 0n, mode: 0o640, uid: 0, gid: 0, sha256: sha256(CONTENT) };
  const id = valueOf(await fixture.journal.begin({ ...WHY, action: { kind: "quarantine-file", path, before } }));
  const places = placesOf(fixture.stateDir, id, path);
  return { id, scene: { original: path, aside: join(fixture.caches, places.asideName), kept: places.file } };
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
    { how: string; state: string; original?: string; kept?: string; aside?: string; words?: string },
  ])[] = [
    ["before any change", () => undefined, { how: "rolled-back", state: "rolled-back", original: CONTENT }],
    [
      "after its directory was created",
      withDirectory(() => undefined),
      { how: "rolled-back", state: "rolled-back", original: CONTENT },
    ],
    [
      "after the rename",
      withDirectory(({ original, kept }) => renameSync(original, kept)),
      { how: "completed", state: "done", kept: CONTENT },
    ],
    [
      "after the rename, with a new file at its path",
      withDirectory(({ original, kept }) => (renameSync(original, kept), writeFileSync(original, "new"))),
      { how: "completed", state: "done", kept: CONTENT, original: "new" },
    ],
    [
      "half copied",
      withDirectory(({ kept }) => writeFileSync(kept, CONTENT.slice(0, 4))),
      { how: "rolled-back", state: "rolled-back", original: CONTENT },
    ],
    [
      "copied, the original not yet renamed",
      withDirectory(({ original, kept }) => copyFileSync(original, kept)),
      { how: "rolled-back", state: "rolled-back", original: CONTENT },
    ],
    [
      "copied, the original renamed aside",
      withDirectory(({ original, kept, aside }) => (copyFileSync(original, kept), renameSync(original, aside))),
      { how: "completed", state: "done", kept: CONTENT },
    ],
    [
      "copied, the original gone",
      withDirectory(({ original, kept }) => (copyFileSync(original, kept), unlinkSync(original))),
      { how: "completed", state: "done", kept: CONTENT },
    ],
    [
      "renamed aside, the copy lost",
      withDirectory(({ original, aside }) => renameSync(original, aside)),
      { how: "rolled-back", state: "rolled-back", original: CONTENT },
    ],
    [
      "renamed aside, the copy lost, with a new file at its path",
      withDirectory(({ original, aside }) => (renameSync(original, aside), writeFileSync(original, "new"))),
      { how: "rolled-back", state: "rolled-back", original: "new", aside: CONTENT, words: "replaced" },
    ],
    [
      "put back by link, not yet unlinked in quarantine",
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
      "its directory gone, like a tmpfs after a reboot",
      ({ original }) => rmSync(dirname(original), { recursive: true }),
      { how: "lost", state: "lost" },
    ],
    [
      "another file in quarantine, none at its path",
      withDirectory(({ original, kept }) => (unlinkSync(original), writeFileSync(kept, "stranger"))),
      { how: "lost", state: "lost", kept: "stranger" },
    ],
    [
      "another file in quarantine, another one at its path",
      withDirectory(({ original, kept }) => (writeFileSync(original, "new one"), writeFileSync(kept, "stranger"))),
      { how: "interrupted", state: "interrupted", original: "new one", kept: "stranger" },
    ],
  ];

  test.each(cases)("%s", async (_name, arrange, expected) => {
    const { id, scene } = await startedQuarantine();
    arrange(scene);

    const recoveries = await recoverOpenEntries(fixture);

    const detail = expect.stringContaining(scene.original) as unknown;
    expect(recoveries).toEqual([{ id, kind: "quarantine-file", how: expected.how, detail }]);
    expect(recoveries[0]?.detail).toContain(expected.words ?? "");
    for (const place of ["original", "kept", "aside"] as const) {
      expect([place, contentOf(scene[place])]).toEqual([place, expected[place]]);
    }
    expect(readdirSync(fixture.stateDir.quarantine)).toHaveLength(expected.kept === undefined ? 0 : 1);
    expect((await readHistory(fixture.stateDir.journal)).records).toMatchObject([{ id, state: expected.state }]);
    expect(await recoverOpenEntries(fixture)).toEqual([]);
  });

  test("stays open when its directory cannot be opened", async () => {
    const { id, scene } = await startedQuarantine();
    renameSync(fixture.caches, `${fixture.caches}.real`);
    symlinkSync(`${fixture.caches}.real`, fixture.caches);

    expect(await recoverOpenEntries(fixture)).toMatchObject([{ id, how: "unsettled" }]);
    expect(contentOf(scene.original)).toBe(CONTENT);
    expect(await readHistory(fixture.stateDir.journal)).toMatchObject({ records: [{ state: "open" }], problems: [] });
  });

  test("stays open when the disk fails, and other open entries are still closed", async () => {
    const { id } = await startedQuarantine();
    const stop = valueOf(await fixture.journal.begin({ ...WHY, action: STOP }));

    const recoveries = await withFileSystem({ rmdir: () => Promise.reject(diskError()) }, () =>
      recoverOpenEntries(fixture),
    );

    expect(recoveries).toMatchObject([
      { id, how: "unsettled", detail: expect.stringContaining("EIO") },
      { id: stop, how: "interrupted", detail: expect.stringContaining("scan") },
    ]);
    expect(await readHistory(fixture.stateDir.journal)).toMatchObject({
      records: [{ state: "open" }, { state: "interrupted" }],
      problems: [],
    });
  });
});

describe("an interrupted undo", () => {
  interface Expected {
    readonly how: string;
    readonly state: string;
    readonly original?: string;
    readonly kept?: string;
  }
  const STILL_KEPT: Expected = { how: "completed", state: "done", kept: CONTENT };
  const BACK: Expected = { how: "undone", state: "undone", original: CONTENT };

  async function startedUndo(): Promise<{ readonly id: JournalId; readonly scene: Scene }> {
    const { id, scene } = await startedQuarantine();
    mkdirSync(dirname(scene.kept));
    renameSync(scene.original, scene.kept);
    await fixture.journal.done(id, "healed");
    await fixture.journal.undoing(id);
    return { id, scene };
  }

  test.each<readonly [string, (scene: Scene) => void, Expected]>([
    ["before any change", () => undefined, STILL_KEPT],
    ["linked back, still in quarantine", ({ original, kept }) => linkSync(kept, original), BACK],
    ["back, not confirmed", ({ original, kept }) => renameSync(kept, original), BACK],
    ["half copied beside its place", ({ aside }) => writeFileSync(aside, "ha"), STILL_KEPT],
    [
      "copied back, still in quarantine",
      ({ original, kept, aside }) => (copyFileSync(kept, aside), linkSync(aside, original)),
      BACK,
    ],
    [
      "still in quarantine, something newer at its place",
      ({ original }) => writeFileSync(original, "newer"),
      { ...STILL_KEPT, original: "newer" },
    ],
    ["still in quarantine, its directory missing", ({ original }) => rmSync(dirname(original), FORCED), STILL_KEPT],
    [
      "gone from quarantine, other content at its place",
      ({ original, kept }) => (unlinkSync(kept), writeFileSync(original, "other")),
      { how: "interrupted", state: "interrupted", original: "other" },
    ],
    ["gone from both places", ({ kept }) => unlinkSync(kept), { how: "lost", state: "lost" }],
    [
      "gone from quarantine, its directory missing",
      ({ original, kept }) => (unlinkSync(kept), rmSync(dirname(original), FORCED)),
      { how: "lost", state: "lost" },
    ],
  ])("%s", async (_name, arrange, { how, state, original, kept }) => {
    const { id, scene } = await startedUndo();
    arrange(scene);

    const detail = expect.stringContaining(scene.original) as unknown;
    expect(await recoverOpenEntries(fixture)).toEqual([{ id, kind: "quarantine-file", how, detail }]);

    expect((await readHistory(fixture.stateDir.journal)).records).toMatchObject([{ id, state }]);
    expect([contentOf(scene.original), contentOf(scene.kept)]).toEqual([original, kept]);
    expect([existsSync(scene.aside), existsSync(dirname(scene.kept))]).toEqual([false, kept !== undefined]);
  });

  test("stays open when its directory cannot be opened", async () => {
    const { id, scene } = await startedUndo();
    renameSync(fixture.caches, `${fixture.caches}.real`);
    symlinkSync(`${fixture.caches}.real`, fixture.caches);

    const detail = expect.stringContaining(fixture.caches) as unknown;
    expect(await recoverOpenEntries(fixture)).toMatchObject([{ id, how: "unsettled", detail }]);
    expect(contentOf(scene.kept)).toBe(CONTENT);
    expect(await readHistory(fixture.stateDir.journal)).toMatchObject({
      records: [{ state: "undoing" }],
      problems: [],
    });
  });
});

describe("an interrupted multus marker", () => {
  const cases: readonly (readonly [string, (path: string) => void, string, string | undefined])[] = [
    ["is removed when it is unchanged", (path) => writeFileSync(path, "marker"), "rolled-back", undefined],
    ["was never written", () => undefined, "rolled-back", undefined],
    ["stays when it was rewritten", (path) => writeFileSync(path, "[delegates]"), "interrupted", "[delegates]"],
  ];

  test.each(cases)("%s", async (_name, arrange, how, left) => {
    const path = join(fixture.caches, "f".repeat(64));
    arrange(path);
    await fixture.journal.begin({ ...WHY, action: { kind: "write-marker", path, sha256: sha256("marker") } });

    const detail = expect.stringContaining(path) as unknown;
    expect(await recoverOpenEntries(fixture)).toMatchObject([{ kind: "write-marker", how, detail }]);
    expect(contentOf(path)).toBe(left);
  });

  test("is closed as not written when its directory is gone", async () => {
    const path = join(fixture.caches, "gone", "f".repeat(64));
    await fixture.journal.begin({ ...WHY, action: { kind: "write-marker", path, sha256: sha256("marker") } });
    expect(await recoverOpenEntries(fixture)).toMatchObject([
      { how: "rolled-back", detail: expect.stringContaining(path) },
    ]);
  });

  test("stays open when its directory cannot be opened", async () => {
    const path = join(fixture.caches, "f".repeat(64));
    writeFileSync(path, "marker");
    await fixture.journal.begin({ ...WHY, action: { kind: "write-marker", path, sha256: sha256("marker") } });
    renameSync(fixture.caches, `${fixture.caches}.real`);
    symlinkSync(`${fixture.caches}.real`, fixture.caches);

    expect(await recoverOpenEntries(fixture)).toMatchObject([
      { how: "unsettled", detail: expect.stringContaining(fixture.caches) },
    ]);
    expect(contentOf(path)).toBe("marker");
  });

  test("leaves no directory descriptor open", async () => {
    await fixture.journal.begin({
      ...WHY,
      action: { kind: "write-marker", path: join(fixture.caches, "f"), sha256: sha256("") },
    });
    const { id } = await startedQuarantine();
    await recoverOpenEntries(fixture);
    await fixture.journal.undoing(id);
    await recoverOpenEntries(fixture);
    expect(heldOpenBelow(fixture.caches)).toEqual([]);
  });

  test("is not followed when it became a symbolic link", async () => {
    const { path: precious } = await fixture.put("precious", "marker");
    const path = join(fixture.caches, "f".repeat(64));
    symlinkSync(precious, path);
    await fixture.journal.begin({ ...WHY, action: { kind: "write-marker", path, sha256: sha256("marker") } });

    expect(await recoverOpenEntries(fixture)).toMatchObject([{ how: "interrupted" }]);
    expect(contentOf(precious)).toBe("marker");
  });
});

describe("other interrupted actions", () => {
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
    await fixture.journal.begin({ ...WHY, action });

    expect(await recoverOpenEntries(fixture)).toMatchObject([{ kind: action.kind, how: "interrupted" }]);
    expect((await readHistory(fixture.stateDir.journal)).records).toMatchObject([{ action, state: "interrupted" }]);
  });
});

function contentOf(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}
