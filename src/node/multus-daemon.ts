import { dirname, posix } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { statSync } from "../host/guarded-fs.ts";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { isStopped, openFilesOf, type ProcessStat, parseListeningSockets, procText } from "../host/proc.ts";
import { statsOf } from "../host/safe-fs.ts";
import { errorLabel, type Source, valueOr } from "../host/source.ts";
import { provePath } from "../host/trusted-path.ts";
import { containerIdsOf } from "./cgroup-path.ts";
import { type Mount, mountsOf } from "./mounts.ts";
import { type ProcessTable, readProcessTable } from "./process-table.ts";
import { type ProcessProver, processProver } from "./trusted-process.ts";
import type { CpuLimit, MultusConfig, MultusDaemon } from "./types/cni.ts";
import { type ContainerId, containerId } from "./types/ids.ts";

/** The socket of thick multus on the node: upstream's manifest, and OpenShift's. */
const SOCKETS = ["/run/multus/multus.sock", "/run/multus/socket/multus.sock"] as const;
const MAX_SOCKET_LIST_BYTES = 16 * 1024 * 1024;

/** Of all processes with its name together: root in any container may start thousands of them. */
const SEARCH_MS = 500;

/**
 * The daemon of thick multus, which runs delegates instead of the runtime. It runs in a container, like any pod, so its
 * name and cgroup prove nothing. The proof is the node's own multus socket: only root can replace it, and this process
 * listens on it.
 */
export function findMultusDaemons(
  root: string,
  processes: readonly ProcessStat[],
  prover: ProcessProver,
  places: readonly string[] = SOCKETS,
): readonly ProcessStat[] {
  const sockets = places
    .filter((path) => provePath(root, path).kind === "trusted")
    .flatMap((path) => identityOf(resolveOnHost(root, path, "follow")) ?? []);
  if (sockets.length === 0) return [];
  const list = procText(hostPath(root, "/proc/1/net/unix"), MAX_SOCKET_LIST_BYTES);
  // In its container the directory may be mounted elsewhere: /host/run/multus/multus.sock.
  const listening = parseListeningSockets(list).filter(({ path }) => path.endsWith("/multus.sock"));

  const end = performance.now() + SEARCH_MS;
  return processes.filter(({ pid, comm }) => {
    if (comm !== "multus-daemon" || performance.now() > end || prover.proveOwner(pid).kind === "refused") return false;
    const dir = hostPath(root, `/proc/${pid}`);
    const held = openFilesOf(dir, end - performance.now());
    return listening.some(({ inode, path }) => {
      if (!held.has(`socket:[${inode}]`)) return false;
      const bound = identityOf(resolveOnHost(posix.join(dir, "root"), path, "follow"));
      return bound !== undefined && sockets.includes(bound);
    });
  });
}

function identityOf(path: string): string | undefined {
  try {
    const stats = statSync(path);
    return stats.isSocket() ? `${stats.dev}:${stats.ino}` : undefined;
  } catch {
    // It does not exist: no multus, or thin multus.
    return undefined;
  }
}

/** A working daemon answers within a millisecond. */
const ANSWER_MS = 2000;
const LONGEST_ADDRESS = 107;
/** Since 4.0 the shim sends the same request before every call. */
const REQUEST = "GET /healthz HTTP/1.0\r\nHost: dummy\r\n\r\n";

interface Where {
  readonly root: string;
  readonly multus: MultusConfig | undefined;
}

/** Like readMultusDaemon, but reads the process table itself. */
export async function probeMultusDaemon(
  where: Where & { readonly timeoutMs: number },
): Promise<MultusDaemon | undefined> {
  const table = await readProcessTable({ root: where.root, signal: AbortSignal.timeout(where.timeoutMs) });
  return await readMultusDaemon({ ...where, table });
}

export async function readMultusDaemon(
  where: Where & { readonly table: Source<ProcessTable> },
): Promise<MultusDaemon | undefined> {
  const { root, multus } = where;
  if (multus?.socket === undefined) return undefined;
  const state = await healthOf(resolveOnHost(root, multus.socket, "follow"));
  const processes = valueOr(where.table, undefined)?.processes ?? [];
  const calls = processes.filter(({ comm }) => comm === "multus-shim").length;
  const daemon = daemonIn(root, processes, multus.socket);
  if (daemon === undefined) return { socket: multus.socket, state };
  const { stat } = daemon;
  const { pid, startedSecondsAfterBoot } = stat;
  const cpu = await measureCpuLimit(root, pid, calls);
  return {
    socket: multus.socket,
    state,
    process: {
      pid,
      startedSecondsAfterBoot,
      isStopped: isStopped(stat),
      ...(daemon.holdsSocket ? containerOf(root, stat) : {}),
    },
    cpu,
  };
}

interface Daemon {
  readonly stat: ProcessStat;
  readonly holdsSocket: boolean;
}

/**
 * The daemon of this node: it listens on the node's socket. If none does, the newest one of root with the socket's
 * directory among its mounts: on a machine whose cluster nodes are containers, the daemons of all nodes are visible.
 */
function daemonIn(root: string, processes: readonly ProcessStat[], socket: string): Daemon | undefined {
  const candidates = processes
    .filter(({ comm, pid }) => comm === "multus-daemon" && isRoots(root, pid))
    .toSorted((one, other) => other.startedSecondsAfterBoot - one.startedSecondsAfterBoot);
  const [holder] = findMultusDaemons(root, candidates, processProver(root), [socket]);
  if (holder !== undefined) return { stat: holder, holdsSocket: true };
  const dir = posix.join("/", posix.relative(root, dirname(resolveOnHost(root, socket, "follow"))));
  const stat = candidates.find(({ pid }) => hasMountOf(root, pid, dir));
  return stat && { stat, holdsSocket: false };
}

/** Only for a process that holds the node's own multus socket, because a name proves nothing. */
function containerOf(root: string, stat: ProcessStat): { readonly containerId?: ContainerId } {
  const cgroup = procText(hostPath(root, `/proc/${stat.pid}/cgroup`));
  const ids = containerIdsOf(processProver(root).cgroupOf(cgroup));
  return ids.length === 1 && ids[0] !== undefined ? { containerId: containerId(ids[0]) } : {};
}

function isRoots(root: string, pid: number): boolean {
  return /^Uid:\t0\t0\t/m.test(procText(hostPath(root, `/proc/${pid}/status`)));
}

async function healthOf(path: string): Promise<MultusDaemon["state"]> {
  const stats = statsOf(path);
  if (stats === undefined) return "missing";
  // Another user who could have created the socket could answer in the daemon's name.
  if (!stats.isSocket() || stats.uid !== 0 || Buffer.byteLength(path) > LONGEST_ADDRESS) return "unknown";
  return await new Promise((resolve) => {
    const socket = process.getBuiltinModule("node:net").connect({ path });
    const end = (state: MultusDaemon["state"]): void => {
      clearTimeout(deadline);
      socket.destroy();
      resolve(state);
    };
    // Also applies to a connection that is not accepted: the kernel queues it for a stopped process.
    const deadline = setTimeout(() => end("silent"), ANSWER_MS);
    socket.once("connect", () => socket.write(REQUEST));
    socket.once("data", (chunk: Buffer) => end(chunk.toString("latin1").startsWith("HTTP/1.") ? "answers" : "unknown"));
    socket.once("error", (error) => {
      const code = errorLabel(error);
      if (code === "ECONNREFUSED") end("dead");
      else if (code === "ENOENT") end("missing");
      // Its backlog is full.
      else end(code === "EAGAIN" ? "silent" : "unknown");
    });
    socket.once("close", () => end("unknown"));
  });
}

/** Long enough for several periods, which last 100 ms by default. */
const MEASURE_MS = 500;

/**
 * The CPU limit of a process's cgroup, and how much of the time it is reached now: what counts since the daemon started
 * includes each earlier load. A daemon whose delegates wait for something else is not throttled.
 */
async function measureCpuLimit(root: string, pid: number, calls: number): Promise<CpuLimit | undefined> {
  const before = readCpuLimit(root, pid);
  if (before === undefined) return undefined;
  const { milliCpu, periodMs } = before;
  if (calls === 0) return { milliCpu, throttledPercent: 0 };
  await sleep(MEASURE_MS);
  const after = readCpuLimit(root, pid);
  // The kernel counts only periods in which something ran.
  const periods = Math.max(MEASURE_MS / periodMs, (after?.periods ?? 0) - before.periods);
  const throttled = (after?.throttled ?? 0) - before.throttled;
  return { milliCpu, throttledPercent: Math.max(0, Math.round((100 * throttled) / periods)) };
}

interface CpuCounters {
  readonly milliCpu: number;
  readonly periodMs: number;
  readonly periods: number;
  readonly throttled: number;
}

/** Undefined without a limit, or if it is unreadable. */
function readCpuLimit(root: string, pid: number): CpuCounters | undefined {
  for (const line of contentOf(root, `/proc/${pid}/cgroup`).split("\n")) {
    const [, controllers = "", path = ""] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    // The kernel shows a cgroup outside of this cgroup namespace as a relative path.
    if (path === "" || path.split("/").includes("..")) continue;
    const limit = controllers === "" ? unifiedLimit(root, path) : legacyLimit(root, controllers, path);
    if (limit !== undefined) return limit;
  }
  return undefined;
}

function unifiedLimit(root: string, path: string): CpuCounters | undefined {
  const dir = `/sys/fs/cgroup${path}`;
  const [quota, period] = contentOf(root, `${dir}/cpu.max`).trim().split(" ").map(Number);
  return limitOf(quota, period, contentOf(root, `${dir}/cpu.stat`));
}

function legacyLimit(root: string, controllers: string, path: string): CpuCounters | undefined {
  if (!controllers.split(",").includes("cpu")) return undefined;
  const dir = `/sys/fs/cgroup/${controllers}${path}`;
  const [quota, period] = ["cpu.cfs_quota_us", "cpu.cfs_period_us"].map((file) =>
    Number(contentOf(root, `${dir}/${file}`)),
  );
  return limitOf(quota, period, contentOf(root, `${dir}/cpu.stat`));
}

/** No limit is `max` in cgroup v2 and -1 in v1. */
function limitOf(quota = Number.NaN, period = Number.NaN, stat: string): CpuCounters | undefined {
  if (!(quota > 0) || !(period > 0)) return undefined;
  return {
    milliCpu: Math.round((1000 * quota) / period),
    periodMs: period / 1000,
    periods: numberIn(stat, "nr_periods"),
    throttled: numberIn(stat, "nr_throttled"),
  };
}

function numberIn(stat: string, key: string): number {
  return Number(new RegExp(`^${key} (\\d+)$`, "m").exec(stat)?.[1] ?? 0);
}

function contentOf(root: string, path: string): string {
  return procText(hostPath(root, path));
}

/** Enough for a node with thousands of pods. */
/** Whether a process has a directory of the node among its mounts, at any path. False if that cannot be read. */
export function hasMountOf(root: string, pid: number, dir: string): boolean {
  const onNode = mountsOf(root, 1)
    .filter(({ point }) => contains(point, dir))
    .reduce<Mount | undefined>((best, one) => (best && best.point.length > one.point.length ? best : one), undefined);
  if (onNode === undefined) return false;
  const inFileSystem = posix.join(onNode.root, posix.relative(onNode.point, dir));
  return mountsOf(root, pid).some((one) => one.device === onNode.device && contains(one.root, inFileSystem));
}

function contains(dir: string, path: string): boolean {
  return dir === "/" || path === dir || path.startsWith(`${dir}/`);
}
