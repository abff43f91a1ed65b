import { mkdirSync, symlinkSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { directoryFinder } from "../../src/durable/kept-directories.ts";
import { scratchDir } from "./scratch-dir.ts";

describe("directoryFinder", () => {
  test("finds directories down to the maximum depth, and follows no link", () => {
    const path = scratchDir();
    mkdirSync(join(path, "networks/cbr0/deeper"), { recursive: true });
    mkdirSync(join(path, "results"));
    symlinkSync(scratchDir(), join(path, "link"));

    const { changedAtMs, hasMore } = directoryFinder()([
      { path, depth: 2 },
      { path: join(path, "missing"), depth: 1 },
    ]);

    const expected = [path, ...["networks", "networks/cbr0", "results"].map((name) => join(path, name))];
    expect([[...changedAtMs.keys()].toSorted(), hasMore]).toEqual([expected.toSorted(), false]);
  });

  test("notices created and removed directories, also in one without changes for long", () => {
    const path = scratchDir();
    mkdirSync(join(path, "networks/old"), { recursive: true });
    const longAgo = Date.now() / 1000 - 3600;
    utimesSync(join(path, "networks"), longAgo, longAgo);
    const find = directoryFinder();
    const count = (): number => find([{ path, depth: 2 }]).changedAtMs.size;
    expect([count(), count()]).toEqual([3, 3]);

    mkdirSync(join(path, "networks/new"));

    expect(count()).toBe(4);
  });

  test("stops at the limit of watches, and reports it", () => {
    const path = scratchDir();
    for (let count = 0; count < 20; count++) mkdirSync(join(path, `network-${count}`));

    const { changedAtMs, hasMore } = directoryFinder(8)([{ path, depth: 1 }]);

    expect([changedAtMs.size, hasMore]).toEqual([8, true]);
  });
});
