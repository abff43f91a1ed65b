import { linkSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { valueOr } from "../../src/host/source.ts";
import { withDaemonConfig } from "../../src/node/cni-facts.ts";
import { readMultusDaemon } from "../../src/node/multus-daemon.ts";
import { readProcessTable } from "../../src/node/process-table.ts";
import type { MultusConfig } from "../../src/node/types/cni.ts";
import { ownProcess } from "../support/process-owner.ts";
import { fill, ID, tempDir } from "./temp-dir.ts";

const SOCKET = "/run/multus/multus.sock";
const CONFIG = "etc/cni/net.d/multus.d/daemon-config.json";
const THICK: MultusConfig = {
  confFile: "/etc/cni/net.d/00-multus.conf",
  cniDir: "/var/lib/cni/multus",
  thick: true,
  socket: SOCKET,
  binDir: "/opt/cni/bin",
};

interface Parts {
  /** Mount table of the daemon. */
  readonly mounts?: string;
  readonly cmdline?: string;
  readonly listens?: boolean;
  readonly cgroup?: string;
  /** Files that only the daemon's container sees. */
  readonly inContainer?: Readonly<Record<string, string>>;
  readonly onNode?: Readonly<Record<string, string>>;
}

const NODE_MOUNTS = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:22 / /run rw - tmpfs tmpfs rw\n";
const HOST_ROOT = "5 4 0:90 / / rw - overlay overlay rw\n6 5 0:22 / /hostroot/run rw - tmpfs tmpfs rw\n";

/** A node whose multus daemon (pid 50) is in a container with its own root, and holds the node's socket. */
async function nodeWith({ cmdline = "", listens = true, cgroup, mounts, inContainer = {}, onNode = {} }: Parts) {
  const root = fill(tempDir(), {
    "proc/uptime": "1000.00 1.00\n",
    "proc/1/net/unix": `0: 2 0 00010000 0001 01 8 ${SOCKET}\n`,
    "run/multus/.keep": "",
    ...onNode,
  });
  const server = createServer((connection) => void connection.destroy());
  await new Promise<void>((resolve) => server.listen(`${root}${SOCKET}`, resolve));
  onTestFinished(() => void server.close());
  const containerRoot = fill(tempDir(), { "run/multus/.keep": "", ...inContainer });
  linkSync(`${root}${SOCKET}`, `${containerRoot}${SOCKET}`);
  for (const [pid, comm] of [
    [1, "init"],
    [50, "multus-daemon"],
  ] as const) {
    fill(root, {
      [`proc/${pid}/stat`]: `${pid} (${comm}) S 0 1 1 0 -1 256 1 2 3 4 5 6 7 8 20 0 1 0 50000 9\n`,
      [`proc/${pid}/cmdline`]: cmdline,
      [`proc/${pid}/fd/.keep`]: "",
    });
    ownProcess(root, pid, { cgroup: pid === 1 ? "0::/\n" : (cgroup ?? `0::/kubepods/pod1/${ID}\n`) });
  }
  symlinkSync(containerRoot, `${root}/proc/50/root`);
  if (listens) symlinkSync("socket:[8]", `${root}/proc/50/fd/3`);
  fill(root, { "proc/1/mountinfo": NODE_MOUNTS, "proc/50/mountinfo": mounts ?? HOST_ROOT });
  return { root, table: await readProcessTable({ root }) };
}

async function cniDirOf(parts: Parts): Promise<string> {
  const { root, table } = await nodeWith(parts);
  return (await withDaemonConfig(root, THICK, valueOr(table, undefined))).cniDir;
}

const ELSEWHERE = JSON.stringify({ cniDir: "/data/multus" });

test.each<readonly [string, Parts]>([
  ["at its default path", { inContainer: { [CONFIG]: ELSEWHERE } }],
  [
    "at the path in its arguments",
    { cmdline: "multus-daemon\0-config\0/etc/m.json\0", inContainer: { "etc/m.json": ELSEWHERE } },
  ],
  [
    "in the other spelling",
    { cmdline: "multus-daemon\0--config=/etc/m.json\0", inContainer: { "etc/m.json": ELSEWHERE } },
  ],
  ["on the node, while no daemon is proven", { listens: false, onNode: { [CONFIG]: ELSEWHERE } }],
])("the daemon's configuration sets the cache directory: %s", async (_where, parts) => {
  expect(await cniDirOf(parts)).toBe("/data/multus");
});

test.each<readonly [string, Parts]>([
  ["does not set it", { inContainer: { [CONFIG]: "{}" } }],
  ["is not JSON", { inContainer: { [CONFIG]: "{" } }],
  ["sets a relative path", { inContainer: { [CONFIG]: JSON.stringify({ cniDir: "multus" }) } }],
  ["belongs to a process which does not hold the socket", { listens: false, inContainer: { [CONFIG]: ELSEWHERE } }],
])("the shim's configuration is used when the daemon's %s", async (_why, parts) => {
  expect(await cniDirOf(parts)).toBe("/var/lib/cni/multus");
});

test("the daemon's container is known only for the process that holds the socket, when it is in one", async () => {
  const containerOf = async (parts: Parts) => {
    const { root, table } = await nodeWith(parts);
    return (await readMultusDaemon({ root, multus: THICK, table }))?.process?.containerId;
  };
  expect(await containerOf({})).toBe(ID);
  expect(await containerOf({ listens: false })).toBeUndefined();
  expect(await containerOf({ cgroup: "0::/system.slice/multus.service\n" })).toBeUndefined();
});

/** Newer than the daemon (pid 50) of the node, like the daemon of another node on the same machine. */
function startDaemon(root: string, pid: number, mounts: string): void {
  fill(root, {
    [`proc/${pid}/stat`]: `${pid} (multus-daemon) S 0 1 1 0 -1 256 1 2 3 4 5 6 7 8 20 0 1 0 90000 9\n`,
    [`proc/${pid}/cmdline`]: "",
    [`proc/${pid}/fd/.keep`]: "",
    [`proc/${pid}/mountinfo`]: mounts,
  });
  ownProcess(root, pid);
}

const OTHER_NODE = "5 4 0:91 / / rw - overlay overlay rw\n6 5 0:77 / /hostroot/run rw - tmpfs tmpfs rw\n";

test.each<readonly [string, Parts, string, number | undefined]>([
  ["the one that holds the socket, whatever else mounts its directory", {}, HOST_ROOT, 50],
  ["without a holder, not the newer one of another node", { listens: false }, OTHER_NODE, 50],
  ["without a holder, the newest that mounts the directory", { listens: false }, HOST_ROOT, 60],
  [
    "without a holder, one that mounts the directory alone",
    { listens: false, mounts: OTHER_NODE },
    "6 5 0:22 /multus /run/multus rw - tmpfs tmpfs rw\n",
    60,
  ],
  [
    "none, where all mount other directories",
    { listens: false, mounts: OTHER_NODE },
    "6 5 0:22 /multus-of-others /run/multus rw - tmpfs tmpfs rw\n",
    undefined,
  ],
])("chooses the daemon of this node: %s", async (_which, parts, mounts, expected) => {
  const { root } = await nodeWith(parts);
  startDaemon(root, 60, mounts);

  const seen = await readMultusDaemon({ root, multus: THICK, table: await readProcessTable({ root }) });

  expect(seen?.process?.pid).toBe(expected);
});
