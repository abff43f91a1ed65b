import { readFile } from "node:fs/promises";
import type { LabNode } from "./node.ts";
import { type NodeProcess, processesOf } from "./node-processes.ts";
import { PAUSE_IMAGE, pauseImage } from "./pause-image.ts";
import { until } from "./poll.ts";
import { CONTAINERD_SOCKET } from "./runtime-config.ts";
import { ensureTools } from "./tools.ts";

const START_MS = 120_000;

export interface OtherContainerdOptions {
  /** 64 hex digits. */
  readonly containerId: string;
  readonly socket?: string;
  /** Docker's is `moby`. */
  readonly namespace?: string;
  readonly cgroup?: string;
  /** With its own pid and mount namespaces and /run: a node in the node, as with kind. */
  readonly isolated?: boolean;
}

export interface OtherContainerd {
  readonly socket: string;
  /** Its container's shim, in the node's pid namespace. */
  readonly shimPid: number;
}

/** A second containerd beside the node's own, with one running container. */
export async function runOtherContainerd(node: LabNode, options: OtherContainerdOptions): Promise<OtherContainerd> {
  const { containerId, namespace = "k8s.io", isolated = false } = options;
  const socket = options.socket ?? (isolated ? CONTAINERD_SOCKET : "/run/other/containerd.sock");
  const cgroup = options.cgroup ?? `/${namespace}/${containerId}`;
  const { busybox } = await ensureTools();
  await node.writeFile("/var/other/image.tar", pauseImage(await readFile(busybox)));
  await node.writeFile("/var/other/config.toml", configOf(socket));
  const ctr = `ctr --address ${socket} --namespace ${namespace}`;
  await node.writeFile(
    "/var/other/start.sh",
    `set -e
${isolated ? "mount -t tmpfs -o mode=755 run /run" : ""}
mkdir -p "$(dirname ${socket})"
containerd --config /var/other/config.toml >>/var/log/other-containerd.log 2>&1 &
until ${ctr} version >/dev/null 2>&1; do sleep 0.1; done
${ctr} images import --snapshotter native /var/other/image.tar
${ctr} run --detach --snapshotter native --cgroup ${cgroup} ${PAUSE_IMAGE} ${containerId} sleep 1000000000
wait
`,
  );
  const inside = isolated ? "unshare --mount --pid --fork --mount-proc " : "";
  await node.check(["sh", "-c", `setsid ${inside}sh /var/other/start.sh </dev/null >/var/log/other.log 2>&1 &`]);
  const shim = await until("the other containerd's container runs", START_MS, () => shimOf(node, containerId));
  return { socket, shimPid: shim.pid };
}

/** The shim that stays: another process of the same name starts it and exits. */
function shimOf(node: LabNode, id: string): NodeProcess | undefined {
  const processes = processesOf(node);
  const isRunning = processes.some(({ command }) => command.join(" ") === "sleep 1000000000");
  return isRunning ? processes.find(({ command }) => isShim(command) && command.includes(id)) : undefined;
}

function isShim(command: readonly string[]): boolean {
  return command.includes("-id") && !command.includes("start");
}

function configOf(socket: string): string {
  return `version = 2
root = "/var/lib/other-containerd"
state = "/run/other-containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.nri.v1.nri"]
[grpc]
  address = "${socket}"
`;
}
