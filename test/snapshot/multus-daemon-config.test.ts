import { linkSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { valueOr } from "../../src/host/source.ts";
import { withDaemonConfig } from "../../src/snapshot/cni-facts.ts";
import { readMultusDaemon } from "../../src/snapshot/multus-health.ts";
import { readProcessTable } from "../../src/snapshot/process-table.ts";
import type { MultusConfig } from "../../src/snapshot/types/cni.ts";
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
  readonly cmdline?: string;
  readonly listens?: boolean;
  readonly cgroup?: string;
  /** Files that only the daemon's container sees. */
  readonly inContainer?: Readonly<Record<string, string>>;
  readonly onNode?: Readonly<Record<string, string>>;
}

/** A node whose multus daemon (pid 50) is a container with a root of its own, and holds the node's socket. */
async function nodeWith({ cmdline = "", listens = true, cgroup, inContainer = {}, onNode = {} }: Parts) {
  const root = fill(tempDir(), {
    "proc/uptime": "1000.00 1.00\n",
    "proc/1/net/unix": `0: 2 0 00010000 0001 01 8 ${SOCKET}\n`,
    "run/multus/.keep": "",
    ...onNode,
  });
  const server = createServer();
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
  return { root, table: await readProcessTable({ root }) };
}

async function cniDirOf(parts: Parts): Promise<string> {
  const { root, table } = await nodeWith(parts);
  return withDaemonConfig(root, THICK, valueOr(table, undefined)).cniDir;
}

const ELSEWHERE = JSON.stringify({ cniDir: "/data/multus" });

test.each<readonly [string, Parts]>([
  ["at its usual place", { inContainer: { [CONFIG]: ELSEWHERE } }],
  [
    "where its arguments say",
    { cmdline: "multus-daemon\0-config\0/etc/m.json\0", inContainer: { "etc/m.json": ELSEWHERE } },
  ],
  [
    "in the other spelling",
    { cmdline: "multus-daemon\0--config=/etc/m.json\0", inContainer: { "etc/m.json": ELSEWHERE } },
  ],
  ["on the node, while no daemon is proven", { listens: false, onNode: { [CONFIG]: ELSEWHERE } }],
])("the daemon's own configuration names its cache: %s", async (_where, parts) => {
  expect(await cniDirOf(parts)).toBe("/data/multus");
});

test.each<readonly [string, Parts]>([
  ["says nothing of it", { inContainer: { [CONFIG]: "{}" } }],
  ["is no JSON", { inContainer: { [CONFIG]: "{" } }],
  ["names no absolute path", { inContainer: { [CONFIG]: JSON.stringify({ cniDir: "multus" }) } }],
  ["is that of a process which does not hold the socket", { listens: false, inContainer: { [CONFIG]: ELSEWHERE } }],
])("the shim's configuration counts where the daemon's %s", async (_why, parts) => {
  expect(await cniDirOf(parts)).toBe("/var/lib/cni/multus");
});

test("the container of the daemon is known only of who holds the socket, and only where it is one", async () => {
  const containerOf = async (parts: Parts) => {
    const { root, table } = await nodeWith(parts);
    return (await readMultusDaemon({ root, multus: THICK, table }))?.process?.containerId;
  };
  expect(await containerOf({})).toBe(ID);
  expect(await containerOf({ listens: false })).toBeUndefined();
  expect(await containerOf({ cgroup: "0::/system.slice/multus.service\n" })).toBeUndefined();
});
