import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { handleFailedDel } from "../../src/guard/del-call.ts";
import { enqueue, netnsForReplay, QUEUE_CAP, readQueue } from "../../src/guard/queue.ts";
import { replayQueue } from "../../src/guard/replay.ts";

/** A state directory and a plugin that fails while the file `down` exists, and appends its calls to `calls`. */
function guarded() {
  const dir = mkdtempSync(join(tmpdir(), "unghost-guard-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  for (const name of ["attachments", "released", "failures", "queue"]) mkdirSync(join(dir, name));
  const plugin = join(dir, "fake");
  const script = `#!/bin/sh
[ ! -e ${dir}/slow ] || sleep 1
echo "$CNI_COMMAND $CNI_CONTAINERID $CNI_NETNS $(cat)" >>${dir}/calls
[ ! -e ${dir}/down ] || { cat ${dir}/down; exit 1; }`;
  writeFileSync(plugin, script, { mode: 0o755 });
  const fails = (msg: string): void => writeFileSync(join(dir, "down"), JSON.stringify({ code: 100, msg }));
  const works = (): void => rmSync(join(dir, "down"));
  const calls = (): readonly string[] =>
    existsSync(join(dir, "calls")) ? readFileSync(join(dir, "calls"), "utf8").trim().split("\n") : [];
  const del = (container: string, words = "boom") =>
    handleFailedDel({
      stateDir: dir,
      root: dir,
      plugin: "fake",
      path: plugin,
      environment: { CNI_CONTAINERID: container, CNI_IFNAME: "eth0", CNI_COMMAND: "DEL", CNI_PATH: dir },
      config: '{"name":"net"}',
      end: { how: "exit 1", stdout: JSON.stringify({ msg: words }), stderr: "" },
    });
  return { dir, plugin, fails, works, calls, del };
}

test("a queued DEL is repeated when the plugin works again, and leaves nothing behind", async () => {
  const { dir, fails, works, calls, del } = guarded();
  fails("dial unix /x: connect: connection refused");
  await del("one");
  await del("two");

  expect(await replayQueue(dir)).toEqual({ done: 0, waiting: 2 });
  works();
  expect(await replayQueue(dir, "fake")).toEqual({ done: 2, waiting: 0 });

  expect(readQueue(dir)).toEqual([]);
  expect(readdirSync(join(dir, "failures"))).toEqual([]);
  expect(calls().at(-1)).toMatch(/^DEL (?:one|two) {2}\{"name":"net"\}$/);
});

test("a DEL that comes again after it was done is not queued", async () => {
  const { dir, fails, works, del } = guarded();
  fails("the configuration lacks something");
  expect(await del("one")).toMatchObject({ do: "queue" });
  works();
  await replayQueue(dir, "fake");
  fails("the configuration lacks something");

  expect(await del("one")).toEqual({ do: "succeed", code: "released-before" });
  expect(readQueue(dir)).toEqual([]);
});

test("a plugin that is away is asked once, and not for each of its DELs", async () => {
  const { dir, fails, calls, del } = guarded();
  fails("dial unix /x: connect: connection refused");
  for (const container of ["one", "two", "three"]) await del(container);

  await replayQueue(dir);

  expect(calls()).toHaveLength(1);
});

test("one replay runs at a time", async () => {
  const { dir, del } = guarded();
  writeFileSync(join(dir, "slow"), "");
  await del("one");

  const results = await Promise.all([replayQueue(dir), replayQueue(dir)]);

  expect(results.filter((result) => result === undefined)).toHaveLength(1);
});

test("a damaged entry stays in the queue and is named", async () => {
  const { dir } = guarded();
  writeFileSync(join(dir, "queue/one@eth0@fake"), "");

  await replayQueue(dir);

  const key = { container: "one", interface: "eth0", plugin: "fake" };
  expect(readQueue(dir)).toEqual([{ key, kind: "unreadable", reason: "is empty" }]);
});

test("a full queue holds no pod whose network was never set up, and passes on what may hold an address", async () => {
  const { dir, plugin, del } = guarded();
  for (let count = 0; count < QUEUE_CAP; count++) {
    const key = { container: `c${count}`, interface: "eth0", plugin: "fake" };
    writeFileSync(join(dir, `queue/${key.container}@eth0@fake`), "");
  }
  mkdirSync(join(dir, "var/lib/cni/results"), { recursive: true });
  writeFileSync(join(dir, "var/lib/cni/results/net-completed-eth0"), "{}");

  expect(await del("never")).toEqual({ do: "succeed", code: "add-never-completed-queue-full" });
  for (let times = 1; times < 5; times++) await del("completed");
  expect(await del("completed")).toEqual({ do: "pass-on", code: "queue-full" });
  const again = { path: plugin, environment: {}, configs: [], code: "state-gone", words: "" } as const;
  expect(enqueue(dir, { container: "c1", interface: "eth0", plugin: "fake" }, again)).toBe("queued");
});

test("a DEL that cannot be queued is passed on", async () => {
  const { dir, del } = guarded();
  rmSync(join(dir, "queue"), { recursive: true });

  expect(await del("one")).toEqual({ do: "pass-on", code: "queue-not-writable" });
});

test("a repeated DEL gets the same network namespace or none", () => {
  const { dir } = guarded();
  const environment = { CNI_NETNS: join(dir, "netns") };
  const key = { container: "one", interface: "eth0", plugin: "fake" };
  writeFileSync(environment.CNI_NETNS, "");
  enqueue(dir, key, { path: "", environment, configs: [], code: "state-gone", words: "" });
  const [entry] = readQueue(dir);
  if (entry?.kind !== "queued") throw new Error("the entry is not there");

  expect(netnsForReplay(entry.del)).toBe(environment.CNI_NETNS);
  writeFileSync(join(dir, "other"), "");
  rmSync(environment.CNI_NETNS);
  expect(netnsForReplay(entry.del)).toBe("");
  expect(netnsForReplay({ environment: { CNI_NETNS: "/proc/1/ns/net" }, netns: "4:1" })).toBe("");
});
