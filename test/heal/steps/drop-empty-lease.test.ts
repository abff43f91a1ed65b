import { existsSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DEFAULT_WAITS } from "../../../src/heal/proof/fresh-facts.ts";
import { takeKernelLock } from "../../../src/heal/state/kernel-lock.ts";
import { dropEmptyLease } from "../../../src/heal/steps/files.ts";
import { MAX_FILE_BYTES } from "../../../src/host/safe-fs.ts";
import { fakeTools, journalOf } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

let fixture: HealFixture;
let networkDir: string;
let path: string;

beforeEach(async () => {
  fixture = await makeHealFixture();
  networkDir = join(fixture.caches, "cbr0");
  mkdirSync(networkDir);
  path = join(networkDir, "10.88.0.9");
});
afterEach(() => fixture.remove());

function dropped(queryMs = DEFAULT_WAITS.queryMs) {
  const tools = fakeTools(fixture, { tools: { waits: { ...DEFAULT_WAITS, queryMs } } });
  return journalOf(fixture, dropEmptyLease({ kind: "drop-empty-lease", path, networkDir }, FINDING, tools));
}

test.each(["", "\n", "no id\r\neth0"])("quarantines a lease without an owner: %j", async (content) => {
  writeFileSync(path, content);

  const { result, history } = await dropped();

  expect([result, existsSync(path)]).toMatchObject([{ kind: "done", undoable: true }, false]);
  expect(history).toMatchObject([{ action: { kind: "quarantine-file", path }, outcome: "healed" }]);
});

test("keeps a lease that names an owner now", async () => {
  writeFileSync(path, `${"a".repeat(64)}\r\neth0`);

  const { result, history } = await dropped();

  expect([result, existsSync(path), history]).toMatchObject([{ kind: "refused", code: "lease-has-owner" }, true, []]);
});

test("keeps a file that is too large for a lease", async () => {
  writeFileSync(path, "");
  truncateSync(path, MAX_FILE_BYTES + 1);

  const { result } = await dropped();

  expect([result, existsSync(path)]).toMatchObject([{ kind: "refused", code: "not-a-plain-file" }, true]);
});

test.each<readonly [string, () => void]>([
  ["gone", () => undefined],
  ["a link", () => symlinkSync("/etc/hostname", path)],
])("does nothing when the lease is %s", async (_, make) => {
  make();
  expect((await dropped()).result).toEqual({ kind: "unneeded" });
});

test("keeps the lease when the journal cannot be written", async () => {
  writeFileSync(path, "");
  await fixture.journal.close();
  const result = await dropEmptyLease({ kind: "drop-empty-lease", path, networkDir }, FINDING, fakeTools(fixture));
  expect([result, existsSync(path)]).toMatchObject([{ kind: "refused", code: "file-refused" }, true]);
});

test("refuses a lock file that is a link", async () => {
  writeFileSync(path, "");
  const elsewhere = join(fixture.caches, "elsewhere");
  symlinkSync(elsewhere, join(networkDir, "lock"));

  const { result } = await dropped();

  expect([result, existsSync(path)]).toMatchObject([{ kind: "refused", code: "lock-refused" }, true]);
  expect(existsSync(elsewhere)).toBe(false);
});

test("does nothing while host-local holds its lock", async () => {
  writeFileSync(path, "");
  const lock = await takeKernelLock(join(networkDir, "lock"), 5000);
  if (lock.kind !== "held") throw new Error(lock.kind);
  try {
    const { result } = await dropped(50);
    expect([result, existsSync(path)]).toMatchObject([{ kind: "refused", code: "lock-refused" }, true]);
  } finally {
    lock.release();
  }
});
