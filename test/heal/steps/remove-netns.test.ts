import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { removeNetns } from "../../../src/heal/steps/networks.ts";
import { failed } from "../../../src/host/source.ts";
import { recordOf } from "../../support/snapshot-builder.ts";
import { type FakeNode, fakeTools, journalOf } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

let fixture: HealFixture;
let path: string;

beforeEach(async () => {
  fixture = await makeHealFixture();
  path = join(fixture.caches, "cni-a");
  writeFileSync(path, "");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await fixture.remove();
});

function inodeOf(file: string): bigint {
  return lstatSync(file, { bigint: true }).ino;
}

function removed(node: FakeNode = {}, inode?: bigint) {
  return journalOf(fixture, removeNetns({ kind: "remove-netns", path, inode }, FINDING, fakeTools(fixture, node)));
}

test("removes a leaked file, and journals it", async () => {
  const others = [recordOf("b"), { ...recordOf("c"), sandbox: undefined }];
  const { result, history } = await removed({ containerdFacts: { records: others } });

  expect([result.kind, existsSync(path)]).toEqual(["done", false]);
  expect(history).toMatchObject([{ action: { kind: "remove-netns", path }, outcome: "healed" }]);
});

test("removes a leaked file on a node that is mounted at another root", async () => {
  const step = { kind: "remove-netns", path: "/cni-a", inode: undefined } as const;
  const tools = fakeTools(fixture, { tools: { hostRoot: fixture.caches } });
  expect([(await removeNetns(step, FINDING, tools)).kind, existsSync(path)]).toEqual(["done", false]);
});

test("needs nothing when the file is gone", async () => {
  path = join(fixture.caches, "cni-gone");
  expect((await removed()).result).toEqual({ kind: "unneeded" });
});

test.each<readonly [string, string, () => FakeNode]>([
  ["processes cannot be read", "namespace-users-unread", () => ({ processes: failed("no /proc") })],
  ["the namespace of a process cannot be read", "namespace-users-unread", () => ({ processes: { netnsUnread: [7] } })],
  ["the runtime's records are unavailable", "namespace-users-unread", () => ({ containerdFacts: undefined })],
  ["a process is in it", "namespace-in-use", () => ({ processes: { netnsInodes: new Set([inodeOf(path)]) } })],
  ["a record refers to it", "namespace-referenced", () => ({ containerdFacts: { records: [recordOf("a")] } })],
  [
    "a record of the sandbox store refers to it",
    "namespace-referenced",
    () => ({ containerdFacts: { sandboxes: [recordOf("a")] } }),
  ],
])("refuses when %s", async (_, code, node) => {
  const { result, history } = await removed(node());

  expect([result, existsSync(path), history]).toMatchObject([{ kind: "refused", code }, true, []]);
});

test.each<readonly [string, () => void]>([
  ["a directory", () => mkdirSync(path)],
  ["a link", () => symlinkSync("/proc/self/ns/net", path)],
])("refuses when the path is %s", async (_, make) => {
  path = join(fixture.caches, "cni-odd");
  make();
  expect((await removed()).result).toMatchObject({ kind: "refused", code: "not-a-namespace" });
  expect(lstatSync(path).isFile()).toBe(false);
});

test("refuses when another namespace is mounted there now", async () => {
  const { result } = await removed({}, inodeOf(path) + 1n);
  expect([result, existsSync(path)]).toMatchObject([{ kind: "refused", code: "namespace-changed" }, true]);
});

test("reports an error when it cannot remove the file", async () => {
  // A directory is created at its path after it was proven.
  const replace = () => {
    rmSync(path);
    mkdirSync(path);
    return {};
  };
  const { result, history } = await removed({ processes: replace });
  expect(result).toMatchObject({ kind: "failed", code: "unlink-failed", reason: expect.stringContaining(path) });
  expect(history).toMatchObject([{ outcome: "failed" }]);
});

/** A fake umount(8): a script that gets the path as its last argument. */
function fakeUmount(script: string): void {
  const bin = join(fixture.caches, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "umount"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  vi.stubEnv("PATH", `${bin}:${process.env["PATH"]}`);
}

test("unmounts a namespace before it removes its file", async () => {
  const seen = join(fixture.caches, "seen");
  fakeUmount(`test -f "$2" && echo "$@" > ${seen}`);

  const { result } = await removed({}, inodeOf(path));

  expect([result.kind, existsSync(path)]).toEqual(["done", false]);
  expect(readFileSync(seen, "utf8")).toBe(`--lazy ${path}\n`);
});

test("keeps a namespace that cannot be unmounted", async () => {
  fakeUmount("echo umount: target is busy. >&2; exit 32");

  const { result, history } = await removed({}, inodeOf(path));

  expect([result, existsSync(path)]).toMatchObject([
    { kind: "failed", code: "unmount-failed", reason: expect.stringMatching(/32.* target is busy\.$/) },
    true,
  ]);
  expect(history).toMatchObject([{ outcome: "failed" }]);
});
