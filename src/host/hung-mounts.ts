import { posix } from "node:path";
import { setTimeout } from "node:timers/promises";
import { CONTAINERD_ROOTS, KUBELET_KUBECONFIGS, placesAt, SOCKETS } from "./distributions.ts";
import { firstMountOn, lateMount, readThroughChild, refuseAlso, refuseBelow } from "./guarded-fs.ts";
import { hostPath } from "./paths.ts";
import { procText } from "./proc.ts";
import { hasStuckReader, probeMounts } from "./process-memory.ts";

/** A mount below which nothing is read. */
interface HungMount {
  readonly point: string;
  readonly type: string;
}

/** Their data is in memory or on disks of this machine. Anything else may wait for a network or for a process. */
const LOCAL =
  /^(?:ext[234]|xfs|btrfs|zfs|bcachefs|f2fs|jfs|reiserfs|erofs|squashfs|iso9660|udf|vfat|exfat|ntfs3|tmpfs|devtmpfs|ramfs|rootfs|overlay|proc|sysfs|cgroup2?|devpts|mqueue|hugetlbfs|nsfs|bpf|tracefs|debugfs|securityfs|selinuxfs|configfs|pstore|efivarfs|fusectl|binfmt_misc|rpc_pipefs|resctrl)$/;

/** Where a scan reads, besides the configured directories. */
const READ = unique([
  ...SOCKETS.flatMap((socket) => {
    const { kubeletRoot, cniConfDir, cniBinDirs, logFiles } = placesAt(socket);
    const ofKubelet = ["", "/pods", "/plugins", "/plugins_registry"].map((name) => `${kubeletRoot}${name}`);
    return [posix.dirname(socket), ...ofKubelet, cniConfDir, ...cniBinDirs, ...logFiles];
  }),
  ...CONTAINERD_ROOTS,
  ...KUBELET_KUBECONFIGS,
  "/proc/uptime",
  "/run/multus",
  "/run/netns",
  "/var/log/containers",
  "/var/log/journal",
  "/var/log/pods",
]);

function unique(dirs: readonly string[]): readonly string[] {
  return [...new Set(dirs)];
}

/** Runtime, kubelet and unghost itself hang with them: reading them with care gains nothing, and nothing could be healed. */
const WHOLE: ReadonlySet<string> = new Set(["/", "/var", "/var/lib"]);

const MAX_BYTES = 16 * 1024 * 1024;

/** Found by an earlier scan. */
let known: ReadonlySet<string> = new Set();

/** All that may hang, with their types. */
let unreliable: readonly HungMount[] = [];

/**
 * Finds the mounts on which the scan would hang, and lets everything below them fail from now on; what is below the others
 * that may stop answering is read by a child. A node without a network file system, FUSE or a stalled disk needs nothing
 * but its list of mounts and the counters of their disks.
 */
export async function refuseHungMounts(
  root: string,
  dirs: readonly string[],
  signal: AbortSignal,
): Promise<readonly HungMount[]> {
  const candidates = await thatMayHang(signal);
  notedAtMs = performance.now();
  unreliable = candidates;
  if (candidates.length === 0) {
    refuseBelow([]);
    return [];
  }
  // Loaded only on such a node, like the modules that start processes.
  const { askMount, hasStuckCall } = await import("./mount-reader.ts");
  const points = new Set(candidates.map(({ point }) => point));
  const read = [...READ, ...dirs].map((dir) => hostPath(root, dir));
  const onTheWay = new Set(read.map((dir) => firstMountOn(dir, points)));
  const wanted = candidates.filter(({ point }) => onTheWay.has(point) || read.some((dir) => isReadBelow(dir, point)));
  // Not probed again as long as the child that probed it hangs: each further one would hang as well.
  const isStuck = hasStuckReader() || hasStuckCall();
  const stillHung = candidates.filter(({ point }) => isStuck && known.has(point));
  const probed = wanted.filter((mount) => !stillHung.includes(mount));
  const answers = await probeMounts(
    probed.map(({ point }) => [point, ...read.filter((dir) => dir.startsWith(point === "/" ? "/" : `${point}/`))]),
    signal,
  );
  const hung = [...stillHung, ...probed.filter((_, index) => answers[index] !== true)];
  known = new Set(hung.map(({ point }) => point));
  refuseBelow(hung.map(({ point }) => point));
  const others = candidates.filter((mount) => !hung.includes(mount) && !WHOLE.has(mount.point));
  readThroughChild(
    others.map(({ point }) => point),
    askMount,
  );
  return hung;
}

/** The mount on the way to a directory, if nothing there answers. */
export async function hungMountOn(dir: string): Promise<HungMount | undefined> {
  const candidates = await thatMayHang();
  const point = firstMountOn(dir, new Set(candidates.map((mount) => mount.point)));
  const onTheWay = candidates.find((mount) => mount.point === point);
  if (onTheWay === undefined) return undefined;
  const [answers] = await probeMounts([[onTheWay.point, dir]]);
  return answers === true ? undefined : onTheWay;
}

async function thatMayHang(signal?: AbortSignal): Promise<readonly HungMount[]> {
  const mounts = mountsNow();
  return [...mounts.filter(isRemote), ...(await onStalledDisks(mounts, signal))];
}

const NOTED_FOR_MS = 10_000;
let notedAtMs = Number.NEGATIVE_INFINITY;

/** For what watches and syncs directories beside the scans: keeps away from mounts that may stop answering. */
export function keepAwayFromMounts(): void {
  if (performance.now() - notedAtMs < NOTED_FOR_MS) return;
  const remote = mountsNow().filter(isRemote);
  notedAtMs = performance.now();
  refuseAlso(remote.flatMap(({ point }) => (WHOLE.has(point) ? [] : [point])));
}

function mountsNow(): readonly Mount[] {
  return mountsIn(procText("/proc/self/mountinfo", MAX_BYTES));
}

function isRemote({ type, point }: Mount): boolean {
  return !LOCAL.test(type) && !point.startsWith("/proc/sys/");
}

/** A busy disk ends a request within milliseconds, and a card that cleans up within tenths of a second. */
const STALL_MS = 500;
const STALL_POLL_MS = 5;

/** Mounts of disks that have requests and end none of them: a process that reads what is not in memory waits with them. */
async function onStalledDisks(mounts: readonly Mount[], signal: AbortSignal | undefined): Promise<readonly Mount[]> {
  const onDisk = mounts.filter(
    ({ type, device, point }) => LOCAL.test(type) && !device.startsWith("0:") && !WHOLE.has(point),
  );
  const before = new Map([...new Set(onDisk.map(({ device }) => device))].map((one) => [one, requestsOf(one)]));
  const stalled = new Set([...before].filter(([, { inFlight }]) => inFlight > 0).map(([device]) => device));
  for (let waited = 0; stalled.size > 0 && waited < STALL_MS && signal?.aborted !== true; waited += STALL_POLL_MS) {
    await setTimeout(STALL_POLL_MS);
    for (const device of stalled) {
      const now = requestsOf(device);
      if (now.inFlight === 0 || now.ended !== before.get(device)?.ended) stalled.delete(device);
    }
  }
  return onDisk.filter(({ device }) => stalled.has(device));
}

/** The fields of a disk's `stat`: reads, writes, discards and flushes that ended, and requests in flight. */
function requestsOf(device: string): { readonly ended: number; readonly inFlight: number } {
  const fields = procText(`/sys/dev/block/${device}/stat`).trim().split(/\s+/).map(Number);
  const ended = [0, 4, 11, 15].reduce((sum, index) => sum + (fields[index] ?? 0), 0);
  return { ended, inFlight: fields[8] ?? 0 };
}

/** The mount that stopped answering since. */
export function hungMeanwhile(): readonly HungMount[] {
  const found = unreliable.filter(({ point }) => point === lateMount());
  known = new Set([...known, ...found.map(({ point }) => point)]);
  return found;
}

/** Volumes of pods are mounted below kubelet's directories, and are never read. */
function isReadBelow(dir: string, point: string): boolean {
  return point.startsWith(`${dir}/`) && !/\/pods\/[^/]+\/volume/.test(point);
}

interface Mount extends HungMount {
  /** `98:0`. */
  readonly device: string;
}

/** Lines of mountinfo: `36 35 98:0 /root /point rw shared:1 - ext4 /dev/root rw`. */
function mountsIn(mountinfo: string): readonly Mount[] {
  return mountinfo.split("\n").flatMap((line) => {
    const type = / - (\S+) /.exec(line)?.[1];
    const [, , device, , point] = line.split(" ", 5);
    return type === undefined || device === undefined || point === undefined
      ? []
      : [{ type, device, point: unescaped(point) }];
  });
}

/** Spaces, tabs, newlines and backslashes are octal. */
function unescaped(file: string): string {
  return file.replace(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
