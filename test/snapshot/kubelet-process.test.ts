import { expect, test } from "vitest";
import { endpointOfRunningKubelet } from "../../src/snapshot/kubelet-process.ts";
import { fill, tempDir } from "./temp-dir.ts";

const NEVER = new AbortController().signal;

/** A /proc with an init and one more process. */
function nodeWith(comm: string, argv: readonly string[], files: Readonly<Record<string, string>> = {}): string {
  const stat = (pid: number, name: string): string => `${pid} (${name}) S 0 1 1 0 -1 4194560 ${"0 ".repeat(12)}1 0 0\n`;
  return fill(tempDir(), {
    "proc/uptime": "100.00 100.00\n",
    "proc/1/stat": stat(1, "init"),
    "proc/7/stat": stat(7, comm),
    "proc/7/cmdline": argv.map((one) => `${one}\0`).join(""),
    ...files,
  });
}

test.each([
  [["kubelet", "--container-runtime-endpoint=unix:///run/a.sock"]],
  [["/usr/bin/kubelet", "--v=2", "--container-runtime-endpoint", "unix:///run/a.sock"]],
  [["kubelet", "-container-runtime-endpoint=unix:///run/a.sock"]],
])("kubelet's flag, as in %j", async (argv) => {
  const root = nodeWith("kubelet", argv);

  expect(await endpointOfRunningKubelet(root, NEVER)).toEqual({
    text: "unix:///run/a.sock",
    by: "kubelet (pid 7)",
    inHost: true,
  });
});

test("the configuration file that kubelet was given", async () => {
  const root = nodeWith("kubelet", ["kubelet", "--config=/etc/kubelet.yaml"], {
    "etc/kubelet.yaml": "containerRuntimeEndpoint: /run/b.sock\n",
  });

  expect(await endpointOfRunningKubelet(root, NEVER)).toMatchObject({ text: "/run/b.sock" });
});

test("k3s, unless it was told otherwise, means the one it starts", async () => {
  const own = nodeWith("k3s-server", ["/usr/local/bin/k3s", "server"]);
  const told = nodeWith("k3s-agent", ["k3s agent", "--container-runtime-endpoint", "/run/containerd/containerd.sock"]);

  expect(await endpointOfRunningKubelet(own, NEVER)).toMatchObject({ text: "/run/k3s/containerd/containerd.sock" });
  expect(await endpointOfRunningKubelet(told, NEVER)).toMatchObject({ text: "/run/containerd/containerd.sock" });
});

test.each([
  ["no kubelet", "bash", ["bash", "--container-runtime-endpoint=/run/a.sock"]],
  ["a kubelet that was told nothing", "kubelet", ["kubelet", "--v=2"]],
  ["a configuration file that is not there", "kubelet", ["kubelet", "--config", "/none.yaml"]],
  ["no arguments to be read", "kubelet", []],
])("%s says nothing", async (_, comm, argv) => {
  expect(await endpointOfRunningKubelet(nodeWith(comm, argv), NEVER)).toBeUndefined();
});
