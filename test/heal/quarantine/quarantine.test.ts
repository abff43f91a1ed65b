import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readHistory } from "../../../src/heal/journal/reader.ts";
import { identifyFile } from "../../../src/heal/quarantine/file-identity.ts";
import { MAX_QUARANTINE_BYTES, quarantineFile } from "../../../src/heal/quarantine/quarantine.ts";
import { type HealFixture, LAYOUTS, makeHealFixture, valueOf, WHY } from "../heal-fixture.ts";

for (const { name, cachesUnder, runs } of LAYOUTS) {
  describe.runIf(runs)(`quarantineFile ${name}`, () => {
    let fixture: HealFixture;
    beforeEach(async () => {
      fixture = await makeHealFixture(cachesUnder === undefined ? {} : { cachesUnder });
    });
    afterEach(() => fixture.remove());

    test("moves the file with mode, owner and times, and journals what it was", async () => {
      const { path } = await fixture.put("cbr0-abc-eth0", "{ half");
      chmodSync(path, 0o604);
      if (process.getuid?.() === 0) chownSync(path, 1234, 4321);
      utimesSync(path, 1_600_000_000.25, 1_500_000_000.5);
      const before = lstatSync(path);

      const outcome = await quarantineFile(fixture, { ...WHY, path, expected: valueOf(await identifyFile("/", path)) });

      if (outcome.outcome !== "healed") throw new Error(outcome.refusal.message);
      expect(readdirSync(fixture.caches)).toEqual([]);
      const quarantined = join(fixture.stateDir.quarantine, outcome.id, "cbr0-abc-eth0");
      const after = lstatSync(quarantined);
      expect([after.mode, after.uid, after.gid]).toEqual([before.mode, before.uid, before.gid]);
      expect([after.mtimeMs, after.atimeMs]).toEqual([before.mtimeMs, before.atimeMs]);
      expect(readFileSync(quarantined, "utf8")).toBe("{ half");
      expect((await readHistory(fixture.stateDir.journal)).records).toMatchObject([
        {
          id: outcome.id,
          state: "done",
          outcome: "healed",
          action: { kind: "quarantine-file", path, before: { size: 6n, mode: 0o604, inode: BigInt(before.ino) } },
        },
      ]);
    });

    test.each([
      ["rewritten", (path: string) => writeFileSync(path, "something else")],
      [
        "replaced by another of the same content",
        (path: string) => (writeFileSync(`${path}.new`, "old"), renameSync(`${path}.new`, path)),
      ],
      ["touched", (path: string) => utimesSync(path, 1, 1)],
    ])("does not move a file that was %s since the scan", async (_name, change) => {
      const request = await fixture.put("cache", "old");
      change(request.path);
      const content = readFileSync(request.path, "utf8");

      const outcome = await quarantineFile(fixture, { ...WHY, ...request });

      expect(outcome).toMatchObject({
        outcome: "refused",
        refusal: { message: expect.stringContaining("was changed") as unknown },
      });
      expect(readFileSync(request.path, "utf8")).toBe(content);
      expect(readdirSync(fixture.stateDir.quarantine)).toEqual([]);
      expect((await readHistory(fixture.stateDir.journal)).records).toEqual([]);
    });

    test("moves an empty file, as left by a power cut", async () => {
      const outcome = await quarantineFile(fixture, { ...WHY, ...(await fixture.put("empty", "")) });

      expect(outcome.outcome).toBe("healed");
      expect(readdirSync(fixture.caches)).toEqual([]);
    });

    test("moves one name of a file with two hard links, and leaves the other", async () => {
      const request = await fixture.put("cache", "content");
      linkSync(request.path, join(fixture.caches, "precious"));

      const outcome = await quarantineFile(fixture, { ...WHY, ...request });

      expect(outcome.outcome).toBe("healed");
      expect(readFileSync(join(fixture.caches, "precious"), "utf8")).toBe("content");
    });
  });
}

describe("quarantineFile", () => {
  let fixture: HealFixture;
  beforeEach(async () => {
    fixture = await makeHealFixture();
  });
  afterEach(() => fixture.remove());

  const odd: readonly (readonly [string, (path: string, fixture: HealFixture) => void, RegExp])[] = [
    [
      "a symbolic link to a precious file",
      (path, { caches }) => symlinkSync(join(caches, "precious"), path),
      /symbolic link/,
    ],
    ["a FIFO", (path) => execFileSync("mkfifo", [path]), /a FIFO/],
    ["a directory", (path) => mkdirSync(path), /a directory/],
    ["a sparse file of 2 GB", (path) => (writeFileSync(path, ""), truncateSync(path, 2 ** 31)), /2147483648 bytes/],
    ["a file that is gone", () => undefined, /no longer there/],
  ];

  test.each(odd)("touches nothing when the path is %s", async (_name, make, sentence) => {
    const { path: precious } = await fixture.put("precious", "precious");
    const { path, expected } = await fixture.put("cache", "content");
    renameSync(path, `${path}.was`);
    make(path, fixture);
    // Even a caller that skips the proof must do no harm.
    const now = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    const proven =
      now === undefined ? expected : { dev: now.dev, inode: now.ino, size: now.size, mtimeNs: now.mtimeNs };

    const outcome = await quarantineFile(fixture, { ...WHY, path, expected: proven });

    expect(outcome).toMatchObject({
      outcome: "refused",
      refusal: { message: expect.stringMatching(sentence) as unknown },
    });
    expect(readFileSync(precious, "utf8")).toBe("precious");
    expect(lstatSync(path, { bigint: true, throwIfNoEntry: false })?.ino).toBe(now?.ino);
    expect(readdirSync(fixture.stateDir.quarantine)).toEqual([]);
  });

  test("never follows a directory that is a symbolic link", async () => {
    const real = join(fixture.caches, "real");
    mkdirSync(real);
    writeFileSync(join(real, "cache"), "content");
    symlinkSync(real, join(fixture.caches, "results"));
    const expected = valueOf(await identifyFile("/", join(real, "cache")));

    const outcome = await quarantineFile(fixture, { ...WHY, path: join(fixture.caches, "results", "cache"), expected });

    expect(outcome).toMatchObject({
      outcome: "refused",
      refusal: { message: expect.stringMatching(/results is a symbolic link/) as unknown },
    });
    expect(existsSync(join(real, "cache"))).toBe(true);
  });

  test("resolves links above the directory against the host's root", async () => {
    const host = join(fixture.caches, "host");
    mkdirSync(join(host, "mnt/data/cni/results"), { recursive: true });
    mkdirSync(join(host, "var"));
    symlinkSync("/mnt/data", join(host, "var/lib"));
    const path = "/var/lib/cni/results/cache";
    writeFileSync(join(host, "mnt/data/cni/results/cache"), "content");
    const context = { ...fixture, hostRoot: host };

    const outcome = await quarantineFile(context, { ...WHY, path, expected: valueOf(await identifyFile(host, path)) });

    expect(outcome.outcome).toBe("healed");
    expect((await readHistory(fixture.stateDir.journal)).records).toMatchObject([
      { action: { path: "/mnt/data/cni/results/cache" } },
    ]);
  });

  test("touches nothing when the journal cannot be written", async () => {
    const request = await fixture.put("cache", "content");
    await fixture.journal.close();

    const outcome = await quarantineFile(fixture, { ...WHY, ...request });

    expect(outcome.outcome).toBe("refused");
    expect(existsSync(request.path)).toBe(true);
  });

  test("puts the file back when the quarantine cannot take it", async () => {
    const request = await fixture.put("cache", "content");
    renameSync(fixture.stateDir.quarantine, `${fixture.stateDir.quarantine}.away`);
    writeFileSync(fixture.stateDir.quarantine, "in the way");

    const outcome = await quarantineFile(fixture, { ...WHY, ...request });

    expect(outcome.outcome).toBe("failed");
    expect(readFileSync(request.path, "utf8")).toBe("content");
  });

  test("moves a file of the maximum size", async () => {
    const request = await fixture.put("cache", new Uint8Array(Number(MAX_QUARANTINE_BYTES)));

    expect((await quarantineFile(fixture, { ...WHY, ...request })).outcome).toBe("healed");
  });

  test("concurrent moves lose nothing", async () => {
    const requests = [];
    for (let number = 0; number < 60; number++)
      requests.push(await fixture.put(`cache-${number}`, `content ${number}`));

    const outcomes = await Promise.all(requests.map((request) => quarantineFile(fixture, { ...WHY, ...request })));

    expect(outcomes.filter(({ outcome }) => outcome === "healed")).toHaveLength(60);
    expect(readdirSync(fixture.stateDir.quarantine)).toHaveLength(60);
  });
});
