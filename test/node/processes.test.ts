import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { readProcessTable } from "../../src/node/process-table.ts";
import { type OurRuntime, readProcesses } from "../../src/node/processes.ts";
import { findRuntimeProcess, isRuntimeName } from "../../src/node/runtime-process.ts";
import { shimArguments } from "../../src/node/trusted-process.ts";
import { ownProcess } from "../support/process-owner.ts";
import { asUnprivileged, fill, ID, isRoot, makePipe, OTHER_ID, tempDir } from "./temp-dir.ts";

const HANG_GUARD = { timeout: 30_000 };

const CNI = {
  CNI_COMMAND: "ADD",
  CNI_CONTAINERID: ID,
  CNI_IFNAME: "eth0",
  CNI_NETNS: "/var/run/netns/cni-1",
  CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID=u-1",
};

function start(command: string, args: readonly string[], env: Readonly<Record<string, string>>): ChildProcess {
  const child = spawn(command, args, { env: { PATH: process.env["PATH"] ?? "", ...env }, stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

/** A socket that this process listens on, like a runtime. */
async function listening(): Promise<string> {
  const socketPath = `${tempDir()}/runtime.sock`;
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  onTestFinished(() => void server.close());
  return socketPath;
}

async function readHere(root = "/", runtime?: OurRuntime) {
  const table = await readProcessTable({ root });
  const source = await readProcesses({ root, table, ...(runtime === undefined ? {} : { runtime }) });
  if (source.status !== "read") throw new Error(JSON.stringify(source));
  return source.value;
}

describe("readProcesses on this machine", () => {
  test("finds a plugin and its child process, descendants of the runtime, by their environment", async () => {
    const runtime = { socketPath: await listening(), cniBinDirs: [] };
    const child = start("sh", ["-c", "sleep 300 & wait"], CNI);

    const plugins = await vi.waitFor(async () => {
      const { plugins: seen } = await readHere("/", runtime);
      const mine = seen.filter(({ sandboxId }) => sandboxId === ID);
      expect(mine.map(({ command }) => command)).toContain("sleep 300");
      return mine;
    }, HANG_GUARD);
    onTestFinished(() => {
      for (const { pid, command } of plugins) if (command === "sleep 300") process.kill(pid, "SIGKILL");
    });

    expect(plugins.find(({ pid }) => pid === child.pid)).toMatchObject({
      origin: "runtime",
      cniCommand: "ADD",
      sandboxId: ID,
      netns: "/var/run/netns/cni-1",
      pod: { namespace: "default", name: "web", uid: "u-1" },
    });
    expect(plugins.every(({ ageSeconds }) => ageSeconds >= 0 && ageSeconds < 60)).toBe(true);
  });

  test("recognises a shim by its arguments, and does not treat it as a plugin, whatever its environment", async () => {
    const dir = fill(tempDir(), { wait: "sleep 300 & wait" });
    // A copy, because a process has the name of its file; the shell keeps the arguments after its script.
    copyFileSync("/bin/sh", `${dir}/containerd-shim-runc-v2`);
    const args = [`${dir}/wait`, "-namespace", "k8s.io", "-id", OTHER_ID];
    const child = start(`${dir}/containerd-shim-runc-v2`, args, CNI);

    const facts = await vi.waitFor(async () => {
      const seen = await readHere();
      expect(seen.shims.find(({ pid }) => pid === child.pid)?.childPids).toHaveLength(1);
      return seen;
    }, HANG_GUARD);
    const shim = facts.shims.find(({ pid }) => pid === child.pid);
    onTestFinished(() => {
      for (const pid of shim?.childPids ?? []) process.kill(pid, "SIGKILL");
    });

    expect(shim).toMatchObject({ id: OTHER_ID });
    expect(facts.plugins.map(({ pid }) => pid)).not.toContain(child.pid);
  });

  test("returns the network namespace of this process", async () => {
    const inode = BigInt(/\d+/.exec(readlinkSync("/proc/self/ns/net"))?.[0] ?? 0);

    expect((await readHere()).netnsInodes.has(inode)).toBe(true);
  });

  test.runIf(isRoot)("reports permission denied to users other than root", async () => {
    const source = await asUnprivileged(async () =>
      readProcesses({ root: "/", table: await readProcessTable({ root: "/" }) }),
    );

    expect(source).toMatchObject({
      status: "failed",
      error: { code: "permission-denied", next: expect.stringContaining("root") },
    });
  });
});

/** A /proc of regular files, for states that a real one cannot show. */
function fakeProc(processes: Readonly<Record<number, Readonly<Record<string, string>>>>): string {
  const root = fill(tempDir(), { "proc/uptime": "1000.00 1.00\n" });
  for (const [pid, { comm = "x", state = "S", ...files }] of Object.entries(processes)) {
    const stat = `${pid} (${comm}) ${state} 1 1 1 0 -1 256 1 2 3 4 5 6 7 8 20 0 1 0 50000 9\n`;
    const dir = `proc/${pid}`;
    fill(root, { [`${dir}/stat`]: stat, [`${dir}/cgroup`]: "0::/\n", [`${dir}/environ`]: "", [`${dir}/cmdline`]: "" });
    fill(root, Object.fromEntries(Object.entries(files).map(([name, text]) => [`${dir}/${name}`, text])));
    fill(root, { [`${dir}/ns/.keep`]: "" });
    symlinkSync(`net:[${pid}]`, `${root}/${dir}/ns/net`);
    ownProcess(root, Number(pid), { cgroup: files["cgroup"] ?? "0::/\n" });
  }
  return root;
}

const CNI_RUNTIME = { socketPath: "/run/containerd/containerd.sock", cniBinDirs: ["/opt/cni/bin"] };

/** The process runs a program of the CNI directory. */
function withPlugin(root: string, pid: number, node = root): string {
  fill(node, { "opt/cni/bin/bridge": "" });
  ownProcess(root, pid, { executable: `${node}/opt/cni/bin/bridge`, cgroup: "0::/\n" });
  return root;
}

describe("readProcesses on a fake /proc", () => {
  test("groups processes by container, with cgroup v1 and v2", async () => {
    const root = fakeProc({
      1: { comm: "init" },
      20: { cgroup: `0::/kubepods/pod1/${ID}\n` },
      21: { cgroup: `2:cpu:/kubepods/${ID}\n1:name=systemd:/kubepods/${ID}\n` },
    });

    expect([...(await readHere(root)).byContainer]).toEqual([[ID, expect.arrayContaining([20, 21])]]);
  });

  test.each([
    ["a kubelet process", { comm: "kubelet" }],
    ["k3s, which embeds it", { comm: "k3s-server" }],
    ["microk8s, which embeds it", { comm: "kubelite" }],
    ["k3s without its launcher", { comm: "k3s", cmdline: "/usr/bin/k3s\0agent\0" }],
  ])("finds the kubelet: %s", async (_what, files) => {
    const root = fakeProc({ 1: { comm: "init" }, 30: files });

    expect((await readHere(root)).kubelet).toEqual({ pid: 30, startedSecondsAfterBoot: 500 });
  });

  test("a k3s command is not a kubelet, and the node's own takes precedence over one in a container", async () => {
    const asCommand = fakeProc({ 1: { comm: "init" }, 30: { comm: "k3s", cmdline: "k3s\0crictl\0pods\0" } });
    const nested = fakeProc({
      1: { comm: "init" },
      30: { comm: "kubelet", cgroup: `0::/kubepods/${ID}` },
      31: { comm: "kubelet" },
    });

    expect((await readHere(asCommand)).kubelet).toBeUndefined();
    expect((await readHere(nested)).kubelet?.pid).toBe(31);
  });

  test("computes ages from boot time, never negative", async () => {
    const environ = `CNI_COMMAND=DEL\0CNI_CONTAINERID=${ID}\0`;
    const root = withPlugin(fakeProc({ 1: { comm: "init" }, 40: { comm: "bridge", environ } }), 40);

    expect((await readHere(root, CNI_RUNTIME)).plugins).toMatchObject([
      { command: "bridge", origin: "cni-directory", ageSeconds: 500, startedSecondsAfterBoot: 500 },
    ]);
  });

  test("ignores a process that ended meanwhile; skips a broken stat", async () => {
    const root = fakeProc({ 1: { comm: "init" } });
    fill(root, { "proc/50/other": "", "proc/51/stat": "garbage", "proc/self-made": "" });

    expect((await readHere(root)).plugins).toEqual([]);
  });

  test.each(["S", "D"])(
    "does not block on a process in state %s that locks its memory, and reports it",
    async (state) => {
      const root = fakeProc({
        1: { comm: "init" },
        80: { comm: "stuck", state },
        81: { comm: "bridge", state, environ: `CNI_COMMAND=ADD\0CNI_CONTAINERID=${ID}\0` },
      });
      const pipe = `${root}/proc/80/environ`;
      rmSync(pipe);
      makePipe(pipe);
      fill(withPlugin(root, 81), { "opt/cni/bin/stuck": "" });

      const source = await readProcesses({ root, table: await readProcessTable({ root }), runtime: CNI_RUNTIME });

      expect(source).toMatchObject({
        status: "read",
        value: { plugins: [{ pid: 81 }] },
        oddities: [{ reason: expect.stringContaining("stuck (pid 80) keeps its memory locked") }],
      });
    },
  );

  test("reads such a process if it unlocks its memory soon", async () => {
    const root = withPlugin(fakeProc({ 1: { comm: "init" }, 80: { comm: "bridge", state: "D" } }), 80);
    const pipe = `${root}/proc/80/environ`;
    rmSync(pipe);
    makePipe(pipe);

    const table = await readProcessTable({ root });
    const reading = readProcesses({ root, table, runtime: CNI_RUNTIME });
    await writeFile(pipe, `CNI_COMMAND=DEL\0CNI_CONTAINERID=${ID}\0`);
    const source = await reading;

    expect(source).toMatchObject({ value: { plugins: [{ pid: 80, cniCommand: "DEL" }] }, oddities: [] });
  });

  test("a shim that locks its memory counts as alive by the directory that it works in", async () => {
    const root = fakeProc({ 1: { comm: "init" }, 80: { comm: "conmon" } });
    rmSync(`${root}/proc/80/cmdline`);
    makePipe(`${root}/proc/80/cmdline`);
    symlinkSync(`/run/containers/storage/overlay-containers/${ID}/userdata`, `${root}/proc/80/cwd`);

    expect([...(await readHere(root)).byContainer]).toEqual([[ID, [80]]]);
  });

  test("a shim of containerd is recognised by that directory, without its memory", async () => {
    const root = fakeProc({ 1: { comm: "init" }, 80: { comm: "containerd-shim" }, 81: { comm: "containerd-shim" } });
    const tasks = "/run/containerd/io.containerd.runtime.v2.task";
    for (const [pid, place] of [
      [80, `k8s.io/${ID}`],
      [81, `moby/${OTHER_ID} (deleted)`],
    ] as const) {
      rmSync(`${root}/proc/${pid}/cmdline`);
      symlinkSync(`${tasks}/${place}`, `${root}/proc/${pid}/cwd`);
    }

    const { shims, othersIds } = await readHere(root, CNI_RUNTIME);

    expect([shims.map(({ pid, id }) => [pid, id]), [...(othersIds ?? [])]]).toEqual([[[80, ID]], [OTHER_ID]]);
  });

  test.each([
    ["of an ordinary user", { uids: "1000\t1000\t1000\t1000" }],
    ["of a pod", { cgroup: `0::/kubepods/pod1/${OTHER_ID}\n` }],
    ["in another pid namespace", { pidNamespace: "pid:[7]" }],
  ])("the memory of a process %s is not read", async (_what, owner) => {
    const root = fakeProc({ 1: { comm: "init" }, 80: { comm: "bridge" } });
    ownProcess(root, 80, owner);
    rmSync(`${root}/proc/80/environ`);
    makePipe(`${root}/proc/80/environ`);

    const source = await readProcesses({ root, table: await readProcessTable({ root }), runtime: CNI_RUNTIME });

    expect(source).toMatchObject({ status: "read", oddities: [] });
  });

  test("of many processes that lock their memory only a few are waited for", async () => {
    const stuck = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [100 + index, { comm: "stuck" }]));
    const root = fill(fakeProc({ 1: { comm: "init" }, ...stuck }), { "opt/cni/bin/stuck": "" });
    for (const pid of Object.keys(stuck)) {
      rmSync(`${root}/proc/${pid}/environ`);
      makePipe(`${root}/proc/${pid}/environ`);
    }

    const table = await readProcessTable({ root });
    const started = performance.now();
    const source = await readProcesses({ root, table, runtime: CNI_RUNTIME });

    expect(source).toMatchObject({ status: "read" });
    expect(source.status === "read" && source.oddities.length).toBeGreaterThanOrEqual(40);
    // Waiting for each of them would take twenty seconds.
    expect(performance.now() - started).toBeLessThan(15_000);
  });

  test("a missing /proc, a hidden one and a timeout each give one message", async () => {
    const hidden = fakeProc({ 70: {} });
    const full = fakeProc({ 1: {} });

    expect(await readProcessTable({ root: tempDir() })).toMatchObject({ status: "failed" });
    expect(await readProcessTable({ root: hidden })).toMatchObject({ error: { next: "run unghost as root" } });
    expect(await readProcessTable({ root: full, signal: AbortSignal.abort() })).toMatchObject({ status: "failed" });
    const table = await readProcessTable({ root: full });
    expect(await readProcesses({ root: full, table, signal: AbortSignal.abort() })).toMatchObject({ status: "failed" });
  });
});

describe("findRuntimeProcess", () => {
  test("finds the process that listens on a socket", async () => {
    const socketPath = await listening();

    const source = await findRuntimeProcess({ root: "/", socketPath, table: await readProcessTable({ root: "/" }) });

    expect(source).toMatchObject({ status: "read", value: { pid: process.pid } });
  });

  test("returns absent when no process listens, also for a socket that is a regular file", async () => {
    const dir = fill(tempDir(), { "plain.sock": "" });
    const table = await readProcessTable({ root: "/" });

    expect(await findRuntimeProcess({ root: "/", socketPath: `${dir}/plain.sock`, table })).toMatchObject({
      status: "absent",
    });
  });

  test("/var/run and /run are the same, and a runtime takes precedence over another process that holds the socket", async () => {
    const unix = (inode: number) => `0: 2 0 00010000 0001 01 ${inode} /run/containerd/containerd.sock\n`;
    const root = fakeProc({ 1: { comm: "init", "net/unix": unix(5) }, 60: { comm: "sh" }, 61: { comm: "containerd" } });
    for (const pid of [60, 61]) {
      fill(root, { [`proc/${pid}/fd/.keep`]: "" });
      symlinkSync("socket:[5]", `${root}/proc/${pid}/fd/3`);
    }

    const source = await findRuntimeProcess({
      root,
      socketPath: "/var/run/containerd/containerd.sock",
      table: await readProcessTable({ root }),
    });

    expect(source).toMatchObject({ status: "read", value: { pid: 61 } });
  });
});

test.each([
  ["containerd", true],
  ["k3s-server", true],
  ["crio", true],
  ["containerd-shim", false],
  ["bash", false],
])("%s is the name of a runtime: %s", (comm, expected) => {
  expect(isRuntimeName(comm)).toBe(expected);
});

test.each([
  [
    ["containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", ID, "-address", "/run/x"],
    { id: ID, isKubernetes: true, address: "/run/x" },
  ],
  [
    ["containerd-shim-runc-v2", "-namespace", "moby", "-id", ID, "-address", "/run/x"],
    { id: ID, isKubernetes: false, address: "/run/x" },
  ],
  [["conmon", "-b", "/run", "-c", ID, "-u", OTHER_ID], { id: ID, isKubernetes: true }],
  [["conmon", "-c", ID, "--exit-command", "/usr/bin/podman"], { id: ID, isKubernetes: false }],
  [["containerd-shim-runc-v2", "-id"], undefined],
  [["containerd-shim-runc-v2", "-v"], undefined],
  [[], undefined],
])("parses the arguments of a shim: %j", (argv, expected) => {
  expect(shimArguments(argv)).toEqual(expected);
});
