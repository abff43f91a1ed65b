import { posix } from "node:path";
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
 * that may stop answering is read by a child. A node without a network file system or FUSE needs nothing but its list of
 * mounts.
 */
export async function refuseHungMounts(
  root: string,
  dirs: readonly string[],
  signal: AbortSignal,
): Promise<readonly HungMount[]> {
  const candidates = currentMounts();
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

const NOTED_FOR_MS = 10_000;
let notedAtMs = Number.NEGATIVE_INFINITY;

/** For what watches and syncs directories beside the scans: keeps away from mounts that may stop answering. */
export function keepAwayFromMounts(): void {
  if (performance.now() - notedAtMs < NOTED_FOR_MS) return;
  refuseAlso(currentMounts().flatMap(({ point }) => (WHOLE.has(point) ? [] : [point])));
}

function currentMounts(): readonly HungMount[] {
  notedAtMs = performance.now();
  return mountsIn(procText("/proc/self/mountinfo", MAX_BYTES));
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

/** Lines of mountinfo: `36 35 98:0 /root /point rw shared:1 - ext4 /dev/root rw`. */
function mountsIn(mountinfo: string): readonly HungMount[] {
  return mountinfo.split("\n").flatMap((line) => {
    const type = / - (\S+) /.exec(line)?.[1];
    const point = line.split(" ", 5)[4];
    if (type === undefined || point === undefined || LOCAL.test(type) || point.startsWith("/proc/sys/")) return [];
    return [{ type, point: unescaped(point) }];
  });
}

/** Spaces, tabs, newlines and backslashes are octal. */
function unescaped(file: string): string {
  return file.replace(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
