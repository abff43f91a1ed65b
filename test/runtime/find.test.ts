import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, truncateSync } from "node:fs";
import { dirname } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { startSimulated } from "../../lab/simulated/runtime.ts";
import { type FindOptions, findRuntime } from "../../src/runtime/find.ts";
import { listenRaw } from "../support/socket-servers.ts";
import { tempDir } from "../support/temp-dir.ts";

const CONTAINERD = "/run/containerd/containerd.sock";
const CRIO = "/run/crio/crio.sock";
const K3S = "/run/k3s/containerd/containerd.sock";

const NO_KUBELET = { endpoint: undefined, notBelieved: [] };

let root: ReturnType<typeof tempDir>;
const cleanUps: (() => Promise<void>)[] = [];

beforeEach(() => {
  root = tempDir();
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  root.remove();
});

function find(options: Partial<FindOptions> = {}) {
  return findRuntime({
    endpoint: undefined,
    env: {},
    hostRoot: root.path,
    timeoutMs: 30_000,
    runningKubelet: () => Promise.resolve(NO_KUBELET),
    doubtOf: () => undefined,
    ...options,
  });
}

async function serve(place: string): Promise<string> {
  mkdirSync(dirname(root.join(place)), { recursive: true });
  const runtime = await startSimulated({ socket: root.join(place) });
  cleanUps.push(() => runtime.close());
  return root.join(place);
}

describe("a configured endpoint", () => {
  test("is used without a probe", async () => {
    expect(await find({ endpoint: "unix:///run/mine.sock" })).toEqual({
      kind: "found",
      path: "/run/mine.sock",
      reason: "--runtime-endpoint",
    });
  });

  test("precedence: flag, CONTAINER_RUNTIME_ENDPOINT, crictl's own file, /etc/crictl.yaml, kubelet's files", async () => {
    root.write("/own-crictl.yaml", "runtime-endpoint: unix:///run/own.sock\n");
    root.write("/etc/crictl.yaml", "runtime-endpoint: unix:///run/crictl.sock\n");
    root.write(
      "/var/lib/kubelet/kubeadm-flags.env",
      'ARGS="--container-runtime-endpoint=unix:///run/kubeadm.sock --v=2"\n',
    );
    root.write("/var/lib/kubelet/config.yaml", "containerRuntimeEndpoint: unix:///run/kubelet.sock\n");
    const own = { CRI_CONFIG_FILE: root.join("own-crictl.yaml") };
    const env = { ...own, CONTAINER_RUNTIME_ENDPOINT: "/run/env.sock" };

    expect(await find({ endpoint: "/run/flag.sock", env })).toMatchObject({ path: "/run/flag.sock" });
    expect(await find({ env })).toMatchObject({ path: "/run/env.sock" });
    expect(await find({ env: own })).toMatchObject({ path: "/run/own.sock" });
    expect(await find()).toMatchObject({ path: root.join("/run/crictl.sock"), reason: "/etc/crictl.yaml" });
    root.write("/etc/crictl.yaml", "timeout: 10\n");
    expect(await find()).toMatchObject({ path: root.join("/run/kubeadm.sock") });
    root.write("/var/lib/kubelet/kubeadm-flags.env", 'ARGS="--v=2"\n');
    expect(await find()).toMatchObject({
      path: root.join("/run/kubelet.sock"),
      reason: "/var/lib/kubelet/config.yaml",
    });
  });

  test.each([
    ["quoted", 'runtime-endpoint: "unix:///run/a.sock"\n', "/run/a.sock"],
    ["with a comment", "runtime-endpoint: unix:///run/a.sock # ours\n", "/run/a.sock"],
    ["a bare path", "image-endpoint: /run/b.sock\nruntime-endpoint: /run/a.sock\n", "/run/a.sock"],
    ["below /var/run, which is a link", "runtime-endpoint: unix:///var/run/a.sock\n", "/run/a.sock"],
  ])("in crictl's file, %s", async (_, content, path) => {
    root.write("/etc/crictl.yaml", content);

    expect(await find()).toMatchObject({ kind: "found", path: root.join(path) });
  });

  test.each([
    ["empty", 'runtime-endpoint: ""\nimage-endpoint: "unix:///run/b.sock"\n'],
    ["left out", "runtime-endpoint:\nimage-endpoint: unix:///run/b.sock\n"],
    ["commented out", "# runtime-endpoint: unix:///run/b.sock\n"],
  ])("in crictl's file, %s: none", async (_, content) => {
    root.write("/etc/crictl.yaml", content);

    expect(await find()).toMatchObject({ kind: "none", message: expect.stringContaining("no socket at") });
  });

  test("that is invalid is reported with its source", async () => {
    const found = await find({ env: { CONTAINER_RUNTIME_ENDPOINT: "tcp://x" } });

    expect(found).toMatchObject({ kind: "none", message: expect.stringMatching(/^CONTAINER_RUNTIME_ENDPOINT: "tcp:/) });
  });
});

describe("probing", () => {
  test("no socket: lists every path", async () => {
    const found = await find();

    expect(found).toMatchObject({ kind: "none", next: expect.stringContaining("--runtime-endpoint") });
    for (const place of [CONTAINERD, CRIO, K3S]) {
      expect(found).toMatchObject({ message: expect.stringContaining(root.join(place)) });
    }
  });

  test("no socket and no kubelet: this is no node", async () => {
    expect(await find()).toMatchObject({ next: expect.stringContaining("unghost fleet scan") });

    root.write("/var/lib/kubelet/config.yaml", "");
    expect(await find()).toMatchObject({ next: expect.stringMatching(/^Start the runtime, or /) });
  });

  test("one socket: used, answering or not", async () => {
    root.write(CONTAINERD, "");

    expect(await find()).toMatchObject({ kind: "found", path: root.join(CONTAINERD) });
  });

  test("two sockets, one answers: uses that one", async () => {
    const path = await serve(CRIO);
    mkdirSync(dirname(root.join(CONTAINERD)), { recursive: true });
    const mute = await listenRaw(root.join(CONTAINERD), () => undefined);
    cleanUps.push(() => mute.close());

    expect(await find({ timeoutMs: 1500 })).toMatchObject({ kind: "found", path });
  });

  test("two sockets, none answers: lists what was tried", async () => {
    root.write(CONTAINERD, "");
    root.write(CRIO, "");

    expect(await find()).toMatchObject({
      kind: "none",
      message: `no container runtime answers: tried ${root.join(CONTAINERD)}, ${root.join(CRIO)}`,
    });
  });

  test("two answer: lists both, and kubelet decides", async () => {
    const paths = [await serve(CONTAINERD), await serve(CRIO)];

    expect(await find()).toMatchObject({ kind: "ambiguous", paths });
    const endpoint = { text: `unix://${CRIO}`, by: "kubelet (pid 7)", inHost: true };
    const runningKubelet = () => Promise.resolve({ endpoint, notBelieved: [] });
    expect(await find({ runningKubelet })).toEqual({ kind: "found", path: root.join(CRIO), reason: "kubelet (pid 7)" });
  });

  test("does not search kubelet's process when it is not needed", async () => {
    await serve(CONTAINERD);
    const runningKubelet = vi.fn(() => Promise.resolve(NO_KUBELET));

    await find({ runningKubelet });

    expect(runningKubelet).not.toHaveBeenCalled();
  });

  test("treats two paths to one socket as one", async () => {
    const path = await serve(CONTAINERD);
    mkdirSync(dirname(root.join(K3S)), { recursive: true });
    symlinkSync(path, root.join(K3S));

    expect(await find()).toMatchObject({ kind: "found", path: root.join(K3S) });
  });
});

describe("paths that users other than root may change", () => {
  const doubt = { detail: "/run/x is owned by uid 1001, not by root", next: "chown root: /run/x" };
  const doubting = (...paths: readonly string[]) => ({
    doubtOf: (path: string) => (paths.includes(path) ? doubt : undefined),
  });

  test("a socket is refused even when an operator names it, with the path and the remedy", async () => {
    expect(await find({ endpoint: "unix:///run/x.sock", ...doubting("/run/x.sock") })).toEqual({
      kind: "refused",
      message: `the runtime socket /run/x.sock (--runtime-endpoint) is not used: ${doubt.detail}`,
      next: doubt.next,
    });
  });

  test("a file that names a socket is refused, without a fallback", async () => {
    root.write("/etc/crictl.yaml", "runtime-endpoint: unix:///run/crictl.sock\n");
    root.write("/var/lib/kubelet/config.yaml", "containerRuntimeEndpoint: unix:///run/kubelet.sock\n");

    expect(await find(doubting("/etc/crictl.yaml"))).toMatchObject({
      kind: "refused",
      message: expect.stringContaining("the endpoint in /etc/crictl.yaml is not used"),
    });
  });

  test("a file of another user is not opened, whatever it contains", async () => {
    root.write("/etc/crictl.yaml", "timeout: 10\n");

    expect(await find(doubting("/etc/crictl.yaml"))).toMatchObject({ kind: "refused", next: doubt.next });
  });

  test.each([
    ["a pipe", (path: string) => execFileSync("mkfifo", [path]), /it is a pipe, socket or device/],
    ["a sparse file of 2 GB", (path: string) => truncateSync(path, 2 ** 31), /it is larger than \d+ bytes/],
  ])("%s where a configuration file belongs is refused without being read", async (_what, make, expected) => {
    await serve(CONTAINERD);
    root.write("/etc/crictl.yaml", "");
    if (expected.source.includes("pipe")) rmSync(root.join("/etc/crictl.yaml"));
    make(root.join("/etc/crictl.yaml"));

    const found = await find();

    expect(found).toMatchObject({ kind: "refused", message: expect.stringMatching(expected) });
  });

  test("a link in a configuration file's path is resolved on the node", async () => {
    root.write("/opt/crictl.yaml", "runtime-endpoint: unix:///run/crictl.sock\n");
    mkdirSync(root.join("/etc"), { recursive: true });
    symlinkSync("/opt/crictl.yaml", root.join("/etc/crictl.yaml"));

    expect(await find()).toMatchObject({ path: root.join("/run/crictl.sock"), reason: "/etc/crictl.yaml" });
  });

  test("a socket found by probing is not connected to", async () => {
    const path = await serve(CONTAINERD);
    await serve(CRIO);

    expect(await find(doubting(CRIO))).toMatchObject({ kind: "found", path });
    expect(await find(doubting(CRIO, CONTAINERD))).toMatchObject({ kind: "refused", next: doubt.next });
  });

  test("reports an untrusted kubelet when nothing else decides", async () => {
    await serve(CONTAINERD);
    await serve(CRIO);
    const notBelieved = ["kubelet (pid 7) runs as uid 65534, not as root"];
    const runningKubelet = () => Promise.resolve({ endpoint: undefined, notBelieved });

    expect(await find({ runningKubelet })).toMatchObject({
      kind: "ambiguous",
      message: expect.stringContaining("not believed: kubelet (pid 7) runs as uid 65534"),
    });
  });
});
