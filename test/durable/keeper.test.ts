import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { until } from "../../lab/poll.ts";
import type { DirectoryWatch } from "../../src/durable/directory-watch.ts";
import { type Keeper, type KeeperOptions, openKeeper } from "../../src/durable/keeper.ts";
import { syncEntries } from "../../src/durable/sync-entries.ts";
import { scratchDir } from "./scratch-dir.ts";

/** Only a hang guard. */
const GUARD_MS = 30_000;

interface Kept {
  readonly dir: string;
  readonly keeper: Keeper;
  /** `directory/name` of every synced file, in order. */
  readonly synced: readonly string[];
  readonly wasSynced: (path: string) => Promise<true>;
}

function keep(dir: string, options: Partial<KeeperOptions> = {}): Kept {
  const synced: string[] = [];
  const keeper = openKeeper({
    roots: () => [{ path: dir, depth: 2 }],
    onLost: (error) => {
      throw error;
    },
    sync: async (path, names) => {
      const done = await syncEntries(path, names);
      synced.push(...done.synced.map((name) => join(path, name).slice(dir.length + 1)));
      return done;
    },
    ...options,
  });
  onTestFinished(() => keeper.close());
  const wasSynced = (path: string): Promise<true> =>
    until(`${path} is synced`, GUARD_MS, () => synced.includes(path) || undefined);
  return { dir, keeper, synced, wasSynced };
}

/** A keeper with a sync under way that does not return during the test. */
async function keepOnHangingDisk(dir: string): Promise<Keeper> {
  const { promise, resolve } = Promise.withResolvers<void>();
  onTestFinished(() => resolve());
  const { keeper } = keep(dir, {
    sync: async () => {
      await promise;
      return { synced: [], directories: [], failed: [], isGone: false, slowestMs: 0 };
    },
  });
  await keeper.started;
  writeFileSync(join(dir, "file"), "content");
  await until("a sync is under way", GUARD_MS, () => keeper.state().syncingSeconds > 0 || undefined);
  return keeper;
}

describe("the keeper", () => {
  test("syncs recent files at its start, and files written, replaced and renamed later", async () => {
    const dir = scratchDir();
    mkdirSync(join(dir, "networks/cbr0"), { recursive: true });
    writeFileSync(join(dir, "networks/cbr0/10.88.0.2"), "before");
    const { keeper, synced, wasSynced } = keep(dir);

    await keeper.started;
    expect(synced).toEqual(["networks/cbr0/10.88.0.2"]);
    writeFileSync(join(dir, "networks/cbr0/10.88.0.3"), "written");
    await wasSynced("networks/cbr0/10.88.0.3");
    writeFileSync(join(dir, "networks/cbr0/.tmp"), "renamed");
    renameSync(join(dir, "networks/cbr0/.tmp"), join(dir, "networks/cbr0/10.88.0.4"));
    await wasSynced("networks/cbr0/10.88.0.4");
    expect(keeper.state()).toMatchObject({ directories: 3, problems: [] });
    expect(keeper.state().filesSynced).toBeGreaterThanOrEqual(3);
  });

  test("notices the directory of a new network with the first file in it", async () => {
    const { dir, keeper, wasSynced } = keep(scratchDir());
    await keeper.started;

    mkdirSync(join(dir, "networks/new"), { recursive: true });
    writeFileSync(join(dir, "networks/new/10.0.0.1"), "id");

    await wasSynced("networks/new/10.0.0.1");
  });

  test("continues after a directory was removed and created again", async () => {
    const dir = scratchDir();
    mkdirSync(join(dir, "results"));
    const { keeper, wasSynced } = keep(dir);
    await keeper.started;

    for (const round of [1, 2, 3]) {
      rmSync(join(dir, "results"), { recursive: true });
      mkdirSync(join(dir, "results"));
      writeFileSync(join(dir, `results/${round}`), "content");
      await wasSynced(`results/${round}`);
      writeFileSync(join(dir, `results/${round}-later`), "content");
      await wasSynced(`results/${round}-later`);
    }
  });

  test("finds files in a directory whose watch silently died", async () => {
    const dir = scratchDir();
    const watch = (): DirectoryWatch => ({ refresh: () => ({ fresh: [], unwatched: [] }), close: () => undefined });
    const { keeper, wasSynced } = keep(dir, { watch });
    await keeper.started;

    for (const name of ["one", "two"]) {
      writeFileSync(join(dir, name), "content");
      await wasSynced(name);
    }
  });

  test("waits for a directory that does not exist yet", async () => {
    const dir = join(scratchDir(), "lib/cni");
    const { keeper, wasSynced } = keep(dir);
    await keeper.started;

    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, "file"), "content");

    await wasSynced("file");
  });

  test("syncs a file again that is replaced while it is synced", async () => {
    const dir = scratchDir();
    let calls = 0;
    const { keeper } = keep(dir, {
      sync: async (path, names) => {
        const done = await syncEntries(path, names);
        if (done.synced.includes("result") && ++calls === 1) {
          writeFileSync(join(path, ".new"), "newer");
          renameSync(join(path, ".new"), join(path, "result"));
        }
        return done;
      },
    });
    await keeper.started;

    writeFileSync(join(dir, "result"), "old");

    await until("it is synced twice", GUARD_MS, () => calls >= 2 || undefined);
  });

  test("never touches the target of a link", async () => {
    const outside = scratchDir();
    const dir = scratchDir();
    symlinkSync(outside, join(dir, "results"));
    const { keeper, synced, wasSynced } = keep(dir);
    await keeper.started;

    writeFileSync(join(outside, "secret"), "content");
    symlinkSync(join(outside, "secret"), join(dir, "link"));
    writeFileSync(join(dir, "file"), "content");
    await wasSynced("file");

    expect(synced).toEqual(["file"]);
    expect(keeper.state().directories).toBe(1);
  });

  test("ends at once while the disk hangs, and reports how long it has waited", async () => {
    const dir = scratchDir();
    const keeper = await keepOnHangingDisk(dir);

    writeFileSync(join(dir, "another"), "content");
    await until("another waits", GUARD_MS, () => keeper.state().waiting > 0 || undefined);

    keeper.close();
  });

  test("notices new directories and writes their files back while a sync hangs", async () => {
    const dir = scratchDir();
    const keeper = await keepOnHangingDisk(dir);

    mkdirSync(join(dir, "networks/cbr0"), { recursive: true });
    writeFileSync(join(dir, "networks/cbr0/10.88.0.2"), "id");

    await until("the directories are watched", GUARD_MS, () => keeper.state().directories === 3 || undefined);
    await until("the file waits", GUARD_MS, () => keeper.state().waiting > 1 || undefined);
  });

  test("reports a failing disk, and its recovery", async () => {
    const dir = scratchDir();
    let code: string | undefined = "EIO";
    const reported: (readonly unknown[])[] = [];
    const { keeper } = keep(dir, {
      sync: async (_path, names) => {
        const list = [...names];
        const failed = code === undefined ? [] : list.map((name) => ({ name, code: code ?? "" }));
        return { synced: code === undefined ? list : [], directories: [], failed, isGone: false, slowestMs: 0 };
      },
      onProblems: (problems) => reported.push(problems),
    });
    await keeper.started;

    writeFileSync(join(dir, "file"), "content");
    await until("it is reported", GUARD_MS, () => reported.length > 0 || undefined);
    code = undefined;
    writeFileSync(join(dir, "file"), "content");
    await until("it is taken back", GUARD_MS, () => reported.length > 1 || undefined);

    expect(reported).toEqual([[{ kind: "unsynced", dir, code: "EIO" }], []]);
  });

  test("handles more files than it can watch individually", async () => {
    const dir = scratchDir();
    const synced = new Set<string>();
    const { keeper } = keep(dir, {
      // Without the disk, whose speed determines the pauses.
      sync: async (_path, names) => {
        const list = [...names];
        for (const name of list) synced.add(name);
        return { synced: list, directories: [], failed: [], isGone: false, slowestMs: 0 };
      },
    });
    await keeper.started;

    for (let count = 0; count < 5000; count++) writeFileSync(join(dir, `file-${count}`), "");

    await until("all are synced", GUARD_MS, () => synced.size === 5000 || undefined);
  });

  test.skipIf(process.getuid?.() !== 0)(
    "sweeps a directory of another mount namespace (needs root), without syncing it repeatedly",
    async () => {
      const holder = spawn("unshare", ["--mount", "sh", "-c", "mount -t tmpfs lab /mnt && echo mounted && exec cat"], {
        stdio: ["pipe", "pipe", "inherit"],
      });
      onTestFinished(() => void holder.stdin.end());
      await once(holder.stdout, "data");
      const dir = `/proc/${holder.pid}/root/mnt`;
      const { keeper, synced, wasSynced } = keep(dir);
      await keeper.started;

      writeFileSync(join(dir, "one"), "content");
      await wasSynced("one");
      writeFileSync(join(dir, "two"), "content");
      await wasSynced("two");
      writeFileSync(join(dir, "three"), "content");
      await wasSynced("three");
      writeFileSync(join(dir, "four"), "content");
      await wasSynced("four");

      expect(keeper.state().problems).toEqual([{ kind: "unwatched", dir }]);
      expect(synced.filter((name) => name === "one").length).toBeLessThanOrEqual(3);
    },
  );
});
