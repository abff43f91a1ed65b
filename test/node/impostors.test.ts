import { symlinkSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { readProcessTable } from "../../src/node/process-table.ts";
import { type OurRuntime, readProcesses } from "../../src/node/processes.ts";
import { findRuntimeProcess } from "../../src/node/runtime-process.ts";
import { type OwnerParts, ownProcess } from "../support/process-owner.ts";
import { fill, ID, OTHER_ID, tempDir } from "./temp-dir.ts";

/** What a process shows of itself, and what the kernel shows of its owner. */
interface Parts extends OwnerParts {
  readonly comm?: string;
  readonly parent?: number;
  readonly session?: number;
  readonly argv?: readonly string[];
  readonly environ?: string;
  readonly holds?: string;
}

const RUNTIME_PID = 10;
const SOCKET = "/run/containerd/containerd.sock";
const RUNTIME = { socketPath: SOCKET, cniBinDirs: ["/opt/cni/bin"] };
const HOST = "0::/system.slice/containerd.service\n";
const UNPRIVILEGED = "65534\t65534\t65534\t65534";

/** A node whose runtime is process 10, and more processes. */
function nodeWith(processes: Readonly<Record<number, Parts>>): string {
  const root = fill(tempDir(), {
    "proc/uptime": "1000.00 1.00\n",
    "proc/1/net/unix": `0: 2 0 00010000 0001 01 5 ${SOCKET}\n`,
    "opt/cni/bin/bridge": "",
  });
  const runtime: Parts = { comm: "containerd", session: RUNTIME_PID, cgroup: "0::/\n", holds: "socket:[5]" };
  for (const [key, parts] of Object.entries({
    1: { comm: "init", cgroup: "0::/\n" },
    [RUNTIME_PID]: runtime,
    ...processes,
  })) {
    const {
      comm = "sleep",
      parent = 1,
      session = Number(key),
      argv = [],
      environ = "",
      holds,
      ...owner
    }: Parts = parts;
    const dir = `proc/${key}`;
    fill(root, {
      [`${dir}/stat`]: `${key} (${comm}) S ${parent} 1 ${session} 0 -1 256 1 2 3 4 5 6 7 8 20 0 1 0 50000 9\n`,
      [`${dir}/environ`]: environ,
      [`${dir}/cmdline`]: argv.map((one) => `${one}\0`).join(""),
      [`${dir}/fd/.keep`]: "",
    });
    ownProcess(root, Number(key), owner);
    symlinkSync(`net:[${key}]`, `${root}/${dir}/ns/net`);
    if (holds !== undefined) symlinkSync(holds, `${root}/${dir}/fd/3`);
  }
  return root;
}

async function readHere(root: string, runtime: OurRuntime = RUNTIME) {
  const source = await readProcesses({ root, table: await readProcessTable({ root }), runtime });
  if (source.status !== "read") throw new Error(JSON.stringify(source));
  return source.value;
}

describe("a process with the environment of a plugin", () => {
  const environ = `CNI_COMMAND=DEL\0CNI_CONTAINERID=${ID}\0`;
  const child = { environ, parent: RUNTIME_PID, cgroup: HOST };
  const pod = `0::/kubepods/pod1/${OTHER_ID}\n`;

  test.each<readonly [string, Readonly<Record<number, Parts>>, string]>([
    ["a child of the runtime", { 40: child }, "runtime"],
    ["a grandchild", { 39: { parent: RUNTIME_PID }, 40: { ...child, parent: 39 } }, "runtime"],
    ["an orphan in the runtime's session", { 40: { ...child, parent: 1, session: RUNTIME_PID } }, "runtime"],
    [
      "a script of the CNI directory",
      { 40: { comm: "bridge", environ, cgroup: HOST, argv: ["/bin/sh", "/opt/cni/bin/bridge"] } },
      "cni-directory",
    ],
  ])("counts when it is %s", async (_what, processes, origin) => {
    expect((await readHere(nodeWith(processes))).plugins).toMatchObject([{ pid: 40, origin, sandboxId: ID }]);
  });

  test.each<readonly [string, Parts]>([
    ["of an ordinary user", { ...child, uids: UNPRIVILEGED }],
    ["of a user, by a set-uid program", { ...child, uids: "1000\t0\t0\t0" }],
    ["in a pod", { ...child, cgroup: pod }],
    ["in a pod, as root and outside of its pid namespace", { environ, cgroup: pod }],
    ["in another pid namespace", { ...child, pidNamespace: "pid:[7]" }],
    ["of root, without a parent", { environ, cgroup: HOST }],
    ["without a complete id", { ...child, environ: "CNI_COMMAND=DEL\0CNI_CONTAINERID=0123\0" }],
  ])("does not count when it is %s", async (_what, parts) => {
    expect((await readHere(nodeWith({ 40: parts }))).plugins).toEqual([]);
  });

  test("still counts when it was left in the service's cgroup by a restart of the runtime", async () => {
    const service = "0::/system.slice/containerd.service\n";
    const runtime: Parts = { comm: "containerd", cgroup: service, holds: "socket:[5]" };
    const orphan: Parts = { environ, cgroup: service };
    const other: Parts = { environ, cgroup: "0::/system.slice/backup.service\n" };

    const { plugins } = await readHere(nodeWith({ [RUNTIME_PID]: runtime, 40: orphan, 41: other }));

    expect(plugins.map(({ pid }) => pid)).toEqual([40]);
  });
});

describe("a process with the name of a shim", () => {
  const argv = ["containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", ID, "-address", SOCKET];
  const shim: Parts = { comm: "containerd-shim", argv, cgroup: HOST };
  const withArgument = (flag: string, value: string) => ({
    ...shim,
    argv: argv.map((one, index) => (argv[index - 1] === flag ? value : one)),
  });

  test.each<readonly [string, Parts]>([
    ["of the runtime", shim],
    ["in the cgroup of its container", { ...shim, cgroup: `0::/kubepods/pod1/${ID}\n` }],
    ["with the socket's other name", withArgument("-address", "/var/run/containerd/containerd.sock")],
  ])("counts: %s", async (_what, parts) => {
    const { shims, othersIds } = await readHere(nodeWith({ 40: parts }));

    expect(shims).toMatchObject([{ pid: 40, id: ID }]);
    expect(othersIds).toBeUndefined();
  });

  test.each<readonly [string, Parts]>([
    ["of an ordinary user", { ...shim, uids: UNPRIVILEGED }],
    ["in a pod", { ...shim, cgroup: `0::/kubepods/pod1/${OTHER_ID}\n` }],
    ["in another pid namespace: a nested node", { ...shim, pidNamespace: "pid:[7]" }],
  ])("belongs to no runtime: %s", async (_what, parts) => {
    const { shims, othersIds } = await readHere(nodeWith({ 40: parts }));

    expect([shims, othersIds?.has(ID) ?? false]).toEqual([[], false]);
  });

  test.each<readonly [string, Parts]>([
    ["a second containerd", withArgument("-address", "/run/second/containerd.sock")],
    ["Docker's containerd", withArgument("-address", "/run/docker/containerd/containerd.sock")],
    ["Docker in the same containerd", withArgument("-namespace", "moby")],
    ["one in another mount namespace, with the same name", { ...shim, mountNamespace: "mnt:[7]" }],
    ["podman", { comm: "conmon", argv: ["conmon", "-c", ID, "--exit-command", "/usr/bin/podman"], cgroup: HOST }],
  ])("belongs to another runtime: %s", async (_what, parts) => {
    const { shims, othersIds } = await readHere(nodeWith({ 40: parts }));

    expect([shims, othersIds]).toEqual([[], new Set([ID])]);
  });
});

test("conmon belongs to CRI-O, also when containerd runs beside it", async () => {
  const root = nodeWith({ 40: { comm: "conmon", argv: ["conmon", "-c", ID], cgroup: HOST } });

  const ofCrio = await readHere(root, { ...RUNTIME, isContainerd: false });
  const ofContainerd = await readHere(root, { ...RUNTIME, isContainerd: true });

  expect(ofCrio.shims).toMatchObject([{ pid: 40, id: ID }]);
  expect([ofContainerd.shims, ofContainerd.othersIds]).toEqual([[], new Set([ID])]);
});

describe("processes in a cgroup", () => {
  test("count for the first container on the path, not for names that it created below", async () => {
    const { byContainer } = await readHere(nodeWith({ 40: { cgroup: `0::/kubepods/pod1/${OTHER_ID}/fake/${ID}\n` } }));

    expect([...byContainer]).toEqual([[OTHER_ID, [40]]]);
  });

  test("of Docker's own containers belong to Docker", async () => {
    const { byContainer, othersIds } = await readHere(
      nodeWith({ 40: { cgroup: `0::/system.slice/docker-${ID}.scope\n` } }),
    );

    expect([[...byContainer], othersIds]).toEqual([[], new Set([ID])]);
  });
});

test.each<readonly [string, Parts]>([
  ["in a pod on the node's network", { cgroup: `0::/kubepods/pod1/${OTHER_ID}\n`, mountNamespace: "mnt:[7]" }],
  ["of an ordinary user", { uids: UNPRIVILEGED }],
  ["in another mount namespace", { mountNamespace: "mnt:[7]", cgroup: "0::/\n" }],
])("a socket with the runtime's name is not the runtime's: %s", async (_what, owner) => {
  const impostor: Parts = { comm: "containerd", holds: "socket:[5]", ...owner };
  const root = nodeWith({ 90: impostor });

  const found = await findRuntimeProcess({ root, socketPath: SOCKET, table: await readProcessTable({ root }) });

  expect(found).toMatchObject({ status: "read", value: { pid: RUNTIME_PID } });
});

test("the process behind a socket is also found below a host root", async () => {
  const root = nodeWith({});

  const found = await findRuntimeProcess({
    root,
    socketPath: `${root}${SOCKET}`,
    table: await readProcessTable({ root }),
  });

  expect(found).toMatchObject({ status: "read", value: { pid: RUNTIME_PID } });
});
