import { symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { readProcessTable } from "../../src/node/process-table.ts";
import { readProcesses } from "../../src/node/processes.ts";
import { ownProcess } from "../support/process-owner.ts";
import { fill, ID, OTHER_ID, tempDir } from "./temp-dir.ts";

const DAEMON = 50;
const DELEGATE = 51;
const POD = `0::/kubepods/pod1/${OTHER_ID}\n`;
const RUNTIME = { socketPath: "/run/containerd/containerd.sock", cniBinDirs: ["/opt/cni/bin"] };

interface Parts {
  /** The root directory of the daemon's container; it contains the node's own socket if that is mounted there. */
  readonly containerRoot?: string;
  readonly listens?: boolean;
  readonly delegateParent?: number;
  readonly delegateSession?: number;
  readonly delegateCgroup?: string;
  readonly delegateUids?: string;
}

async function listen(path: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => void server.close());
}

/** A node with thick multus in a container, and a running delegate. */
async function delegateSeen(parts: Parts): Promise<readonly unknown[]> {
  const root = fill(tempDir(), {
    "proc/uptime": "1000.00 1.00\n",
    "proc/1/net/unix": "0: 2 0 00010000 0001 01 8 /run/multus/multus.sock\n",
    "run/multus/.keep": "",
  });
  await listen(`${root}/run/multus/multus.sock`);
  const processes = {
    1: { comm: "init", parent: 0, cgroup: "0::/\n", session: 1 },
    [DAEMON]: { comm: "multus-daemon", parent: 1, cgroup: POD, session: DAEMON },
    [DELEGATE]: {
      comm: "sh",
      parent: parts.delegateParent ?? DAEMON,
      cgroup: parts.delegateCgroup ?? POD,
      session: parts.delegateSession ?? DELEGATE,
    },
  };
  for (const [pid, { comm, parent, cgroup, session }] of Object.entries(processes)) {
    const dir = `proc/${pid}`;
    fill(root, {
      [`${dir}/stat`]: `${pid} (${comm}) S ${parent} 1 ${session} 0 -1 256 1 2 3 4 5 6 7 8 20 0 1 0 50000 9\n`,
      [`${dir}/environ`]: Number(pid) === DELEGATE ? `CNI_COMMAND=DEL\0CNI_CONTAINERID=${ID}\0` : "",
      [`${dir}/cmdline`]: "",
      [`${dir}/fd/.keep`]: "",
    });
    const mountNamespace = Number(pid) === 1 ? "mnt:[1]" : "mnt:[7]";
    const uids = Number(pid) === DELEGATE ? parts.delegateUids : undefined;
    ownProcess(root, Number(pid), { cgroup, mountNamespace, ...(uids === undefined ? {} : { uids }) });
    symlinkSync(`net:[${pid}]`, `${root}/${dir}/ns/net`);
  }
  symlinkSync(parts.containerRoot ?? root, `${root}/proc/${DAEMON}/root`);
  if (parts.listens ?? true) symlinkSync("socket:[8]", `${root}/proc/${DAEMON}/fd/3`);

  const source = await readProcesses({ root, table: await readProcessTable({ root }), runtime: RUNTIME });
  if (source.status !== "read") throw new Error(JSON.stringify(source));
  return source.value.plugins.map(({ pid, origin }) => [pid, origin]);
}

test.each<readonly [string, Parts]>([
  ["a child", {}],
  ["an orphan of its session", { delegateParent: 1, delegateSession: DAEMON }],
])("a delegate of the daemon that listens on the node's multus socket counts: %s", async (_what, parts) => {
  expect(await delegateSeen(parts)).toEqual([[DELEGATE, "multus-daemon"]]);
});

test.each<readonly [string, Parts]>([
  ["its parent does not listen on the socket", { listens: false }],
  ["it is not a child of the daemon", { delegateParent: 1 }],
  ["it is in another container", { delegateCgroup: `0::/kubepods/pod2/${ID}\n` }],
  ["it is not run by root", { delegateUids: "1000\t1000\t1000\t1000" }],
])("a process in a container with CNI variables does not count when %s", async (_what, parts) => {
  expect(await delegateSeen(parts)).toEqual([]);
});

test("a pod with its own socket of the same name is not multus", async () => {
  const containerRoot = fill(tempDir(), { "run/multus/.keep": "" });
  await listen(`${containerRoot}/run/multus/multus.sock`);

  expect(await delegateSeen({ containerRoot })).toEqual([]);
});
