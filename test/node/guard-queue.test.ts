import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readGuardQueue } from "../../src/node/guard-queue.ts";
import { scratchDir } from "../durable/scratch-dir.ts";

const SINCE = "2026-01-02T03:04:05.000Z";

function rootWith(files: Readonly<Record<string, string>>): string {
  const root = scratchDir();
  const dir = join(root, "var/lib/unghost/cni/queue");
  mkdirSync(dir, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  return root;
}

test("a node without a guard, or with an empty queue, has none", () => {
  expect(readGuardQueue(scratchDir())).toBeUndefined();
  expect(readGuardQueue(rootWith({ ".123.draft": "{}" }))).toBeUndefined();
});

test("counts every entry and names the oldest", () => {
  const queued = { queuedAt: SINCE, words: "connection refused" };
  const root = rootWith({
    "web@eth0@kube-ovn": JSON.stringify(queued),
    "db@eth0@bridge": JSON.stringify({ ...queued, queuedAt: "2026-01-02T03:04:06.000Z" }),
  });

  expect(readGuardQueue(root)).toEqual({
    waiting: 2,
    oldest: {
      sandboxId: "web",
      interface: "eth0",
      plugin: "kube-ovn",
      since: new Date(SINCE),
      words: "connection refused",
    },
  });
});

test.each([
  ["is empty, as after a power cut", ""],
  ["is no JSON", "{"],
  ["has no time", JSON.stringify({ queuedAt: "yesterday" })],
  ["has another kind of time", JSON.stringify({ queuedAt: 5, words: [] })],
])("an entry that %s is counted", (_, text) => {
  expect(readGuardQueue(rootWith({ "web@eth0@bridge": text }))).toMatchObject({
    waiting: 1,
    oldest: { sandboxId: "web", plugin: "bridge" },
  });
});

test("a link in the queue is no entry", () => {
  const root = rootWith({});
  symlinkSync("/etc/passwd", join(root, "var/lib/unghost/cni/queue/web@eth0@bridge"));
  expect(readGuardQueue(root)).toBeUndefined();
});
