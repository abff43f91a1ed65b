import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import type { LabNode } from "../../lab/node.ts";
import { sweepLeftovers } from "../../lab/node-dir.ts";
import { finishedPod, runPod, runPods } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { identify } from "../../lab/process-identity.ts";
import { ContainerState, PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "./real-node.ts";

describe.skipIf(NO_REAL_NODE !== undefined)("a real lab node", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("keeps its disks and nothing else through a power cut", async (runtime) => {
    const node = await start({ runtime });
    const pods = await runPods(node, 3, { containers: [{ name: "main" }] });
    const finished = await finishedPod(node);
    const firstBoot = await bootId(node);
    expect(await states(node)).toEqual({ ready: 3, notReady: 1 });
    expect(await node.check(["ls", "/run/netns"])).not.toBe("");

    await node.powerCut();
    await node.powerOn();

    expect(await bootId(node)).not.toBe(firstBoot);
    expect(await states(node)).toEqual({ ready: 0, notReady: 4 });
    expect((await node.exec(["ls", "/run/netns"])).stdout).toBe("");
    const results = readdirSync(node.path("/var/lib/cni/results"));
    for (const pod of pods) expect(results).toContain(`cbr0-${pod.sandboxId}-eth0`);
    expect(results.filter((name) => name.includes(finished.sandboxId))).toEqual([]);
    const addresses = readdirSync(node.path("/var/lib/cni/networks/cbr0")).filter((name) => name.startsWith("10."));
    expect(addresses).toHaveLength(3);
    expect(await exitOf(node, pods[0]?.containerIds[0])).toEqual([255, "Unknown"]);
    expect(await exitOf(node, finished.containerIds[0])).toEqual([0, "Completed"]);
  });

  eachRuntime("keeps pods running when only the runtime is killed", async (runtime) => {
    const node = await start({ runtime });
    const pod = await runPod(node, { name: "web", containers: [{ name: "main" }] });
    const boot = await bootId(node);

    await node.killRuntime();
    await expect(node.cri.version({ timeoutMs: 5000 })).rejects.toThrow();
    await node.startRuntime();

    expect(await bootId(node)).toBe(boot);
    expect(await states(node)).toEqual({ ready: 1, notReady: 0 });
    const { status } = await node.cri.containerStatus(pod.containerIds[0] ?? "", CALL);
    expect(status?.state).toBe(ContainerState.CONTAINER_RUNNING);
  });

  test("counts its uptime from its own boot", async () => {
    const node = await start();
    await node.powerCut();
    await node.powerOn({ runtime: false });

    const uptime = Number((await node.check(["cat", "/proc/uptime"])).split(" ")[0]);
    const startTicks = Number((await node.check(["cat", "/proc/1/stat"])).split(" ")[21]);

    expect(uptime).toBeLessThan(machineUptime());
    expect(startTicks / 100).toBeLessThanOrEqual(uptime);
  });

  test("boots after everything that was written before, by its own clock", async () => {
    const node = await start();
    // A boot in the same second of the machine's would count from its beginning.
    await until(
      "a second is over in part",
      10_000,
      () => (machineUptime() % 1 > 0.2 && machineUptime() % 1 < 0.4) || undefined,
    );
    await node.writeFile("/var/last", "");

    await node.powerCut();
    await node.powerOn({ runtime: false });

    const offsets = readFileSync(`/proc/${node.initPid}/timens_offsets`, "utf8");
    const uptime = machineUptime() + Number(/^boottime +(\S+)/m.exec(offsets)?.[1]);
    const bootedAt = Date.now() - uptime * 1000;
    expect(bootedAt).toBeGreaterThan(statSync(node.path("/var/last")).mtimeMs);
  });

  test("shows nothing of the machine's own configuration", async () => {
    const node = await start();

    const etc = (await node.check(["ls", "/etc"])).trim().split("\n");

    expect(etc).not.toContain("crictl.yaml");
    expect(etc).not.toContain("fstab");
    expect((await node.exec(["touch", "/usr/written-from-the-lab"])).code).not.toBe(0);
    expect((await node.check(["hostname"])).trim()).toBe(node.hostname);
  });

  test("reaps orphans", async () => {
    const node = await start();

    await node.check(["sh", "-c", "for i in 1 2 3 4 5; do (sh -c 'sleep 0.1' &) ; done"]);

    const zombies = async () =>
      (await node.check(["sh", "-c", "grep -l '^State:.Z' /proc/[0-9]*/status || true"])).trim();
    await until("no zombie is left", 60_000, async () => ((await zombies()) === "" ? true : undefined));
  });

  test("runs commands with input, environment, another user and a timeout", async () => {
    const node = await start();

    expect((await node.exec(["cat"], { stdin: "hello" })).stdout).toBe("hello");
    expect((await node.exec(["sh", "-c", "echo $COLOUR"], { env: { COLOUR: "green" } })).stdout).toBe("green\n");
    expect((await node.exec(["id", "-u"], { user: 65534 })).stdout).toBe("65534\n");
    expect(await node.exec(["sh", "-c", "echo no >&2; exit 7"])).toMatchObject({ code: 7, stderr: "no\n" });
    expect(await node.exec(["sleep", "1000"], { timeoutMs: 200 })).toMatchObject({ timedOut: true });
    expect((await node.check(["sh", "-c", "cat /proc/[0-9]*/comm"])).split("\n")).not.toContain("sleep");
  });

  test("runs beside another one with the same addresses and names", async () => {
    const [one, two] = await Promise.all([start(), start()]);
    const spec = { name: "twin", uid: "11111111-2222-4333-8444-555555555555" };
    await Promise.all([runPod(one, spec), runPod(two, spec)]);

    await one.powerCut();

    expect(await states(two)).toEqual({ ready: 1, notReady: 0 });
    expect(readdirSync(two.path("/var/lib/cni/networks/cbr0"))).toContain("10.88.0.2");
  });

  test("leaves the machine unchanged", async () => {
    const before = machine();
    const node = await start();
    await runPods(node, 2, { containers: [{ name: "main" }] });
    const init = node.initPid;
    expect(machine()).toEqual(before);

    await node.destroy();
    await node.destroy();

    expect(machine()).toEqual(before);
    expect(existsSync(node.dir)).toBe(false);
    expect(cgroupsOf(node.id)).toEqual([]);
    expect(init === undefined ? undefined : identify(init)).toBeUndefined();
  });

  test.each([
    ["that is stopped", ({ process: owner }: Orphan) => owner.kill("SIGTERM")],
    // As the worker of a test runner that was ended.
    ["whose parent process is gone", ({ process: owner }: Orphan) => owner.disconnect()],
  ])("ends with an owner %s", async (_how, end) => {
    const orphan = await ownedByAnother();

    end(orphan);

    await until("the owner has ended", 60_000, () => (identify(orphan.owner) === undefined ? true : undefined));
    expect(identify(orphan.initPid)).toBeUndefined();
    expect(existsSync(orphan.dir)).toBe(false);
    expect(cgroupsOf(orphan.id)).toEqual([]);
  });

  test("dies with an owner that is killed, and the sweep removes its leftovers", async () => {
    const orphan = await ownedByAnother();
    expect(cgroupsOf(orphan.id)).not.toEqual([]);

    process.kill(orphan.owner, "SIGKILL");

    await until("the node has died", 60_000, () => (identify(orphan.initPid) === undefined ? true : undefined));
    // The kernel closes a dying owner's pipe, which ends the node, before the owner itself counts as gone.
    await until("the sweep has removed the node", 60_000, () => {
      sweepLeftovers();
      return existsSync(orphan.dir) ? undefined : true;
    });
    expect(cgroupsOf(orphan.id)).toEqual([]);
  });
});

async function bootId(node: LabNode): Promise<string> {
  return (await node.check(["cat", "/proc/sys/kernel/random/boot_id"])).trim();
}

async function states(node: LabNode): Promise<{ readonly ready: number; readonly notReady: number }> {
  const sandboxes = await node.cri.listPodSandbox(undefined, CALL);
  const ready = sandboxes.filter((sandbox) => sandbox.state === PodSandboxState.SANDBOX_READY).length;
  return { ready, notReady: sandboxes.length - ready };
}

async function exitOf(
  node: LabNode,
  id: string | undefined,
): Promise<readonly [number | undefined, string | undefined]> {
  const { status } = await node.cri.containerStatus(id ?? "", CALL);
  return [status?.exitCode, status?.reason];
}

/**
 * What a node could have left on the machine, apart from its own directory and cgroups, which have its id. Mounts below
 * a lab directory are disks of other tests' nodes; a node that leaves its own there cannot remove its directory.
 */
function machine(): unknown {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  return {
    mounts: mounts.map((line) => line.split(" ")[4]).filter((point) => !point?.includes("/unghost-l")),
    links: readdirSync("/sys/class/net"),
    netns: existsSync("/run/netns") ? readdirSync("/run/netns") : [],
    varLib: readdirSync("/var/lib"),
    run: readdirSync("/run"),
  };
}

function cgroupsOf(id: string): readonly string[] {
  const found: string[] = [];
  const walk = (dir: string) => {
    for (const entry of readdirSync(dir, { withFileTypes: true })) {
      if (!entry.isDirectory()) continue;
      if (entry.name.startsWith("unghost-lab-")) {
        if (entry.name.endsWith(id)) found.push(join(dir, entry.name));
      } else walk(join(dir, entry.name));
    }
  };
  walk("/sys/fs/cgroup");
  return found;
}

function machineUptime(): number {
  return Number.parseFloat(readFileSync("/proc/uptime", "utf8"));
}

interface Orphan {
  readonly process: ChildProcess;
  readonly owner: number;
  readonly id: string;
  readonly dir: string;
  readonly initPid: number;
}

/** A node that another process started and holds. */
async function ownedByAnother(): Promise<Orphan> {
  const script = `
    const { startNode } = await import(${JSON.stringify(resolve("lab/node.ts"))});
    const node = await startNode();
    console.log(JSON.stringify({ owner: process.pid, id: node.id, dir: node.dir, initPid: node.initPid }));
    setInterval(() => {}, 1000);`;
  const owner = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  const line = await new Promise<string>((heard, failed) => {
    owner.stdout?.once("data", (chunk: Buffer) => heard(chunk.toString()));
    owner.once("exit", (code) => failed(new Error(`the owner ended with ${code}`)));
  });
  return { process: owner, ...(JSON.parse(line) as Omit<Orphan, "process">) };
}
