import { chownSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { endpointOfRunningKubelet } from "../../src/node/kubelet-process.ts";
import { type OwnerParts, ownProcess } from "../support/process-owner.ts";
import { fill, isRoot, tempDir } from "./temp-dir.ts";

const NEVER = new AbortController().signal;

/** A /proc with an init and one more process. */
function nodeWith(
  comm: string,
  argv: readonly string[],
  files: Readonly<Record<string, string>> = {},
  owner: OwnerParts = {},
): string {
  const stat = (pid: number, name: string): string => `${pid} (${name}) S 0 1 1 0 -1 4194560 ${"0 ".repeat(12)}1 0 0\n`;
  const root = fill(tempDir(), {
    "proc/uptime": "100.00 100.00\n",
    "proc/1/stat": stat(1, "init"),
    "proc/7/stat": stat(7, comm),
    "proc/7/cmdline": argv.map((one) => `${one}\0`).join(""),
    ...files,
  });
  ownProcess(root, 1, { cgroup: "0::/init.scope\n" });
  ownProcess(root, 7, owner);
  return root;
}

test.each([
  [["kubelet", "--container-runtime-endpoint=unix:///run/a.sock"]],
  [["/usr/bin/kubelet", "--v=2", "--container-runtime-endpoint", "unix:///run/a.sock"]],
  [["kubelet", "-container-runtime-endpoint=unix:///run/a.sock"]],
])("reads kubelet's flag from %j", async (argv) => {
  const root = nodeWith("kubelet", argv);

  expect(await endpointOfRunningKubelet(root, NEVER)).toEqual({
    endpoint: { text: "unix:///run/a.sock", by: "kubelet (pid 7)", inHost: true },
    notBelieved: [],
  });
});

test("reads the configuration file that kubelet was given", async () => {
  const root = nodeWith("kubelet", ["kubelet", "--config=/etc/kubelet.yaml"], {
    "etc/kubelet.yaml": "containerRuntimeEndpoint: /run/b.sock\n",
  });

  expect(await endpointOfRunningKubelet(root, NEVER)).toMatchObject({ endpoint: { text: "/run/b.sock" } });
});

test("k3s uses the runtime that it starts, unless configured otherwise", async () => {
  const own = nodeWith("k3s-server", ["/usr/local/bin/k3s", "server"]);
  const configured = nodeWith("k3s-agent", [
    "k3s agent",
    "--container-runtime-endpoint",
    "/run/containerd/containerd.sock",
  ]);

  const endpointIn = async (root: string) => (await endpointOfRunningKubelet(root, NEVER)).endpoint?.text;
  expect(await endpointIn(own)).toBe("/run/k3s/containerd/containerd.sock");
  expect(await endpointIn(configured)).toBe("/run/containerd/containerd.sock");
});

test.each([
  ["no kubelet", "bash", ["bash", "--container-runtime-endpoint=/run/a.sock"]],
  ["a kubelet without a setting", "kubelet", ["kubelet", "--v=2"]],
  ["a missing configuration file", "kubelet", ["kubelet", "--config", "/none.yaml"]],
  ["unreadable arguments", "kubelet", []],
])("%s has no configured endpoint", async (_, comm, argv) => {
  expect((await endpointOfRunningKubelet(nodeWith(comm, argv), NEVER)).endpoint).toBeUndefined();
});

describe("a process named kubelet is not trusted", () => {
  const id = "0123456789abcdef".repeat(4);

  test.each<readonly [string, OwnerParts, RegExp]>([
    ["of an ordinary user", { uids: "65534\t65534\t65534\t65534" }, /runs as uid 65534, not as root/],
    ["a set-uid program of an ordinary user", { uids: "65534\t0\t0\t0" }, /runs as uid 65534/],
    ["in another pid namespace", { pidNamespace: "pid:[7]" }, /another pid namespace/],
    ["in another mount namespace", { mountNamespace: "mnt:[7]", cgroup: "0::/x\n" }, /another mount namespace/],
    ["of a pod", { cgroup: `0::/kubepods/besteffort/pod1/${id}\n` }, /runs in a container/],
    [
      "of a pod, by systemd",
      { cgroup: `0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-${id}.scope\n` },
      /container/,
    ],
    ["of Docker", { cgroup: `0::/system.slice/docker-${id}.scope\n` }, /runs in a container/],
    ["of podman", { cgroup: `0::/machine.slice/libpod-${id}.scope/container\n` }, /runs in a container/],
    ["of a pod, in one hierarchy of v1", { cgroup: `5:cpu:/\n4:memory:/kubepods/pod1/${id}\n` }, /runs in a container/],
  ])("%s", async (_what, owner, reason) => {
    const root = nodeWith("kubelet", ["kubelet", "--container-runtime-endpoint=/run/evil.sock"], {}, owner);

    const found = await endpointOfRunningKubelet(root, NEVER);

    expect(found.endpoint).toBeUndefined();
    expect(found.notBelieved).toEqual([expect.stringMatching(reason)]);
  });

  test.runIf(isRoot)("when its executable belongs to another user", async () => {
    const dir = fill(tempDir(), { kubelet: "" });
    chownSync(`${dir}/kubelet`, 65534, 65534);
    const argv = ["kubelet", "--container-runtime-endpoint=/run/evil.sock"];
    const root = nodeWith("kubelet", argv, {}, { executable: `${dir}/kubelet` });

    expect(await endpointOfRunningKubelet(root, NEVER)).toMatchObject({
      endpoint: undefined,
      notBelieved: [expect.stringMatching(/users other than root can replace/)],
    });
  });

  test.runIf(isRoot)("nor is a configuration file that another user may write", async () => {
    const root = nodeWith("kubelet", ["kubelet", "--config=/etc/kubelet.yaml"], {
      "etc/kubelet.yaml": "containerRuntimeEndpoint: /run/evil.sock\n",
    });
    chownSync(`${root}/etc/kubelet.yaml`, 65534, 65534);

    expect((await endpointOfRunningKubelet(root, NEVER)).endpoint).toBeUndefined();
  });
});

describe("a kubelet is trusted", () => {
  test.each<readonly [string, OwnerParts]>([
    ["with a mount namespace from systemd", { cgroup: "0::/system.slice/kubelet.service\n" }],
    [
      "with a mount namespace from OpenShift's kubens, with cgroup v1",
      { cgroup: "1:name=systemd:/system.slice/kubelet.service\n2:cpu:/\n" },
    ],
    ["in its container on Talos", { cgroup: "0::/podruntime/kubelet\n" }],
  ])("%s", async (_what, owner) => {
    const argv = ["kubelet", "--container-runtime-endpoint=/run/a.sock"];
    const root = nodeWith("kubelet", argv, {}, { ...owner, mountNamespace: "mnt:[7]" });

    expect(await endpointOfRunningKubelet(root, NEVER)).toMatchObject({ endpoint: { text: "/run/a.sock" } });
  });

  test("when the whole node is a container (kind), and not when only the kubelet is", async () => {
    const id = "0123456789abcdef".repeat(4);
    const argv = ["kubelet", "--container-runtime-endpoint=/run/a.sock"];
    const root = nodeWith("kubelet", argv, {}, { cgroup: `0::/docker/${id}/kubelet.slice/kubelet.service\n` });
    ownProcess(root, 1, { cgroup: `0::/docker/${id}/init.scope\n` });

    expect(await endpointOfRunningKubelet(root, NEVER)).toMatchObject({ endpoint: { text: "/run/a.sock" } });

    ownProcess(root, 1, { cgroup: "0::/init.scope\n" });
    expect((await endpointOfRunningKubelet(root, NEVER)).endpoint).toBeUndefined();
  });
});
