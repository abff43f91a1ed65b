import { mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type DirectoryWatch, watchDirectories } from "../../../src/durable/directory-watch.ts";
import { tempDir } from "../../node/temp-dir.ts";
import { type Hints, hints } from "./hints.ts";

function watching(): { readonly watch: DirectoryWatch; readonly seen: Hints; readonly dir: string } {
  const seen = hints();
  const watch = watchDirectories((dir) => seen.onHint({ from: dir, urgency: "soon" }));
  onTestFinished(() => watch.close());
  return { watch, seen, dir: join(tempDir(), "results") };
}

describe("directory watch", () => {
  test("hints when a file is created, truncated or deleted", async () => {
    const { watch, seen, dir } = watching();
    mkdirSync(dir);
    watch.refresh([dir]);

    writeFileSync(join(dir, "file"), "content");
    await seen.next(/results/);
    truncateSync(join(dir, "file"), 0);
    await seen.next(/results/);
    rmSync(join(dir, "file"));
    await seen.next(/results/);
  });

  test("watches a directory that is created later, or created again", async () => {
    const { watch, seen, dir } = watching();
    watch.refresh([dir]);
    mkdirSync(dir);
    watch.refresh([dir]);
    writeFileSync(join(dir, "one"), "");
    await seen.next(/results/);

    rmSync(dir, { recursive: true });
    mkdirSync(dir);
    watch.refresh([dir]);
    seen.all.splice(0);
    writeFileSync(join(dir, "two"), "");

    await seen.next(/results/);
  });

  test("ignores a path that does not exist or is not a directory", () => {
    const { watch, seen, dir } = watching();
    writeFileSync(dir, "");

    watch.refresh([dir, "/nowhere/at/all"]);

    expect(seen.all).toEqual([]);
  });
});
