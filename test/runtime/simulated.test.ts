import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, describe, expect, test } from "vitest";
import { podRef, sandboxConfig } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { startSimulatedNode } from "../../lab/simulated/node.ts";
import { type SimulatedRuntime, startSimulated } from "../../lab/simulated/runtime.ts";
import { sandboxName } from "../../src/node/types/ids.ts";
import { ZERO_TIME } from "../../src/node/types/runtime.ts";
import { openContainerd } from "../../src/runtime/containerd.ts";
import { type CriClient, openCri } from "../../src/runtime/cri.ts";
import { PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { tempDir } from "../support/temp-dir.ts";

const CALL = { timeoutMs: 30_000 };
const SHORT = { timeoutMs: 200 };
const cleanUps: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

function connected<R extends SimulatedRuntime>(runtime: R): { readonly runtime: R; readonly cri: CriClient } {
  const cri = openCri(runtime.socket);
  cleanUps.push(
    () => runtime.close(),
    () => cri.close(),
  );
  return { runtime, cri };
}

async function simulated() {
  const dir = tempDir();
  cleanUps.push(() => dir.remove());
  return connected(await startSimulated({ socket: dir.join("cri.sock") }));
}

describe("a sandbox whose CNI ADD hangs", () => {
  const ref = podRef({ name: "stuck" });
  const config = sandboxConfig({ name: "stuck" }, ref);
  const name = sandboxName(ref);

  async function hung() {
    const { runtime, cri } = await simulated();
    runtime.script({ hangs: ["stuck"] });
    await expect(cri.runPodSandbox(config, SHORT)).rejects.toMatchObject({ kind: "deadline" });
    return { runtime, cri };
  }

  test("holds its name while CRI lists nothing and containerd has it", async () => {
    const { runtime, cri } = await hung();
    const containerd = openContainerd(runtime.socket);
    cleanUps.push(() => containerd.close());

    expect(await cri.listPodSandbox(undefined, CALL)).toEqual([]);
    const [record] = await containerd.listSandboxes(CALL);
    await expect(cri.runPodSandbox(config, CALL)).rejects.toMatchObject({
      text: `failed to reserve sandbox name "${name}": name "${name}" is reserved for "${record?.sandboxId}"`,
    });
    await cri.removePodSandbox(record?.sandboxId ?? "", CALL);
    await expect(cri.runPodSandbox(config, CALL)).rejects.toMatchObject({ kind: "refused" });
  });

  test("rolls back and frees the name once the plugin is ended", async () => {
    const { runtime, cri } = await hung();

    runtime.script({ hangs: [] });
    const id = await until("the name is free", CALL.timeoutMs, () =>
      cri.runPodSandbox(config, CALL).catch(() => undefined),
    );

    expect((await cri.listPodSandbox(undefined, CALL)).map((sandbox) => sandbox.id)).toEqual([id]);
  });

  test("is visible after a power cut, incomplete and without its name", async () => {
    const { runtime, cri } = await hung();

    await runtime.powerCut();
    runtime.script({ hangs: [] });

    const [ghost] = await cri.listPodSandbox(undefined, CALL);
    expect(ghost).toMatchObject({ state: PodSandboxState.SANDBOX_NOTREADY, createdAt: ZERO_TIME });
    await expect(cri.runPodSandbox(config, CALL)).resolves.not.toBe(ghost?.id);
  });
});

describe("a sandbox whose CNI DEL fails", () => {
  test("can be neither stopped nor removed, until DEL works again", async () => {
    const { runtime, cri } = await simulated();
    const [id = ""] = runtime.addSandboxes(1, { state: "dead" });
    runtime.script({ delErrors: { [id]: "server_socket is required" } });

    const failed = `failed to destroy network for sandbox "${id}": server_socket is required`;
    await expect(cri.stopPodSandbox(id, CALL)).rejects.toMatchObject({ text: failed });
    await expect(cri.removePodSandbox(id, CALL)).rejects.toMatchObject({
      text: `failed to forcibly stop sandbox "${id}": ${failed}`,
    });
    runtime.script({ delErrors: {} });
    await cri.removePodSandbox(id, CALL);

    expect(await cri.listPodSandbox(undefined, CALL)).toEqual([]);
  });

  test.each([
    ["half-made", "any error at all", "removed"],
    ["dead", "open /x: no such file or directory", "removed"],
    ["ready", "open /x: no such file or directory", "kept"],
    ["ready", "interface not found", "removed"],
  ] as const)("%s with %j is %s", async (state, text, outcome) => {
    const { runtime, cri } = await simulated();
    const [id = ""] = runtime.addSandboxes(1, { state });
    runtime.script({ delErrors: { [id]: text } });

    const removed = await cri.removePodSandbox(id, CALL).then(
      () => "removed",
      () => "kept",
    );

    expect(removed).toBe(outcome);
  });
});

test("a call may be slow, and one hung DEL delays no other sandbox", async () => {
  const { runtime, cri } = await simulated();
  const [hanging = "", healthy = ""] = runtime.addSandboxes(2, { state: "dead" });
  runtime.script({ hangs: [hanging], latencyMs: { version: 60_000 } });

  await expect(cri.removePodSandbox(hanging, SHORT)).rejects.toMatchObject({ kind: "deadline" });
  await expect(cri.version(SHORT)).rejects.toMatchObject({ kind: "deadline" });
  await cri.removePodSandbox(healthy, CALL);

  expect((await cri.listPodSandbox(undefined, CALL)).map((sandbox) => sandbox.id)).toEqual([hanging]);
});

test("without containerd's services it counts as another runtime", async () => {
  const dir = tempDir();
  cleanUps.push(() => dir.remove());
  const { runtime } = connected(await startSimulated({ socket: dir.join("cri.sock"), containerd: false }));
  const containerd = openContainerd(runtime.socket);
  cleanUps.push(() => containerd.close());

  await expect(containerd.listContainers(CALL)).rejects.toMatchObject({ kind: "unsupported" });
});

describe("the simulated node", () => {
  test("keeps its files and gets a new boot id after a power cut", async () => {
    const { runtime: node, cri } = connected(await startSimulatedNode());
    const [id = ""] = node.addSandboxes(1);
    const firstBoot = bootId(node.root);

    await node.powerCut();

    expect(bootId(node.root)).not.toBe(firstBoot);
    expect((await cri.listPodSandbox(undefined, CALL))[0]?.state).toBe(PodSandboxState.SANDBOX_NOTREADY);
    expect(results(node.root)).toEqual([`cbr0-${id}-eth0`, `cni-loopback-${id}-lo`]);
    expect(readFileSync(join(node.root, "var/lib/cni/networks/cbr0/10.88.0.2"), "latin1")).toBe(`${id}\r\neth0`);
    expect(readFileSync(join(node.root, "proc/uptime"), "utf8")).toMatch(/^\d+\.\d\d \d+\.\d\d\n$/);
    await cri.removePodSandbox(id, CALL);
    expect(results(node.root)).toEqual([]);
    expect(existsSync(join(node.root, "var/lib/cni/networks/cbr0/10.88.0.2"))).toBe(false);
  });

  test("cannot remove a sandbox whose cached result is empty", async () => {
    const { runtime: node, cri } = connected(await startSimulatedNode());
    const [id = ""] = node.addSandboxes(1, { state: "dead" });
    writeFileSync(join(node.root, `var/lib/cni/results/cbr0-${id}-eth0`), "");

    await expect(cri.removePodSandbox(id, CALL)).rejects.toMatchObject({
      text: expect.stringMatching(/failed to get network "cbr0" cached result: .* unexpected end of JSON input$/),
    });
  });

  test("leaves no files or processes", async () => {
    const node = await startSimulatedNode();
    await node.close();

    expect(existsSync(node.root)).toBe(false);
  });
});

test("the program reports when it is ready and ends on SIGTERM", async () => {
  const dir = tempDir();
  cleanUps.push(() => dir.remove());
  const socket = dir.join("cri.sock");
  const program = join(import.meta.dirname, "../../lab/simulated/main.ts");
  const args = [program, "--socket", socket, "--sandboxes", "7", "--state", "dead"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  cleanUps.push(() => void child.kill("SIGKILL"));
  const [line] = await once(createInterface(child.stdout), "line");
  const cri = openCri(socket);

  const sandboxes = await cri.listPodSandbox({ state: { state: PodSandboxState.SANDBOX_NOTREADY } }, CALL);
  cri.close();
  child.kill("SIGTERM");
  const [code] = await once(child, "exit");

  expect(line).toBe(`ready unix://${socket} sandboxes=7 state=dead`);
  expect(sandboxes).toHaveLength(7);
  expect(code).toBe(0);
});

function bootId(root: string): string {
  return readFileSync(join(root, "proc/sys/kernel/random/boot_id"), "utf8");
}

function results(root: string): readonly string[] {
  return readdirSync(join(root, "var/lib/cni/results")).sort();
}
