import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { leftBehind, machineNetwork } from "../../lab/left-behind.ts";
import { until } from "../../lab/poll.ts";
import { HANG_GUARD_MS, NO_REAL_NODE } from "../lab/real-node.ts";
import { tempDir } from "../support/temp-dir.ts";
import { GUARD_MS, UNGHOST } from "./unghost.ts";

const SETTLE_MS = 10_000;

interface Demo {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly ended: Promise<unknown>;
  printed(): string;
}

function startDemo(env: Readonly<Record<string, string>> = {}, uid?: number): Demo {
  const child = spawn(process.execPath, ["lab/demo.ts"], {
    env: { PATH: process.env["PATH"], UNGHOST_BIN: UNGHOST, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  }
  if (child.pid === undefined) throw new Error("the demo did not start");
  return { child, pid: child.pid, ended: once(child, "close"), printed: () => text };
}

/** Waits for killed processes: zombies wait for the machine's reaper. */
async function leftForGood(pid: number): Promise<readonly string[]> {
  const end = performance.now() + SETTLE_MS;
  while (leftBehind(pid).length > 0 && performance.now() < end) await sleep(50);
  return leftBehind(pid);
}

describe.skipIf(NO_REAL_NODE !== undefined)("the demo on a real node", { timeout: HANG_GUARD_MS }, () => {
  test("runs to its end and leaves nothing behind", async () => {
    const network = machineNetwork();

    const demo = startDemo();
    await demo.ended;

    const story = demo.printed();
    expect(demo.child.exitCode, story).toBe(0);
    const flat = story.replace(/\s+/g, " ");
    expect(flat).toMatch(
      /failed to reserve sandbox name "web_shop_\S+": name "web_shop_\S+" is reserved for "[0-9a-f]{64}"/,
    );
    expect(flat).toMatch(/no such file or directory|no runtime socket at \/run\/containerd\/containerd\.sock/);
    expect(flat).toContain("GHOSTS 3 ghosts on ");
    expect(flat).toMatch(/1 kept on purpose \(finished pod\)/);
    expect(story).not.toContain("\u001b");
    expect(await leftForGood(demo.pid)).toEqual([]);
    expect(machineNetwork()).toEqual(network);
  });

  test.each([
    ["SIGINT", "1. A node at work"],
    ["SIGINT", "2. The power goes"],
    ["SIGTERM", "4. The runtime starts"],
    ["SIGHUP", "5. What unghost sees"],
  ] as const)("%s at “%s” ends it and leaves nothing behind", async (signal, scene) => {
    const demo = startDemo();
    await until(`the demo got to ${scene}`, GUARD_MS, () => demo.printed().includes(scene) || undefined);

    demo.child.kill(signal);
    await demo.ended;

    expect(demo.child.exitCode).not.toBe(0);
    expect(await leftForGood(demo.pid)).toEqual([]);
  });

  test("reports a missing executable, and leaves nothing behind", async () => {
    const demo = startDemo({ UNGHOST_BIN: "/nowhere/unghost" });
    await demo.ended;

    expect(demo.child.exitCode).toBe(1);
    expect(demo.printed()).toMatch(/^demo: .*run make build\n$/);
    expect(await leftForGood(demo.pid)).toEqual([]);
  });
});

describe("the demo without root", () => {
  const UNPRIVILEGED = 65534;
  const uid = process.getuid?.() === 0 ? UNPRIVILEGED : undefined;

  function tempFor(name: string): string {
    const dir = tempDir();
    onTestFinished(() => dir.remove());
    chmodSync(dir.path, 0o755);
    mkdirSync(dir.join(name));
    // Like /tmp: unghost would refuse a socket in a directory where other users may replace it.
    chmodSync(dir.join(name), 0o1777);
    return dir.join(name);
  }

  test("runs on the simulated node, reports it, and leaves nothing behind", async () => {
    const TMPDIR = tempFor("tmp");

    const demo = startDemo({ TMPDIR }, uid);
    await demo.ended;

    const flat = demo.printed().replace(/\s+/g, " ");
    expect(demo.child.exitCode, demo.printed()).toBe(0);
    expect(flat).toContain("a simulated runtime");
    expect(flat).toContain("needs root");
    expect(flat).toContain("failed to reserve sandbox name");
    expect(flat).toContain("GHOSTS 3 ghosts on ");
    expect(readdirSync(TMPDIR)).toEqual([]);
  });

  test("leaves nothing behind after Ctrl-C", async () => {
    const TMPDIR = tempFor("tmp");
    const demo = startDemo({ TMPDIR }, uid);
    await until("the demo has started", GUARD_MS, () => demo.printed().includes("A node at work") || undefined);

    demo.child.kill("SIGINT");
    await demo.ended;

    expect(readdirSync(TMPDIR)).toEqual([]);
  });
});
