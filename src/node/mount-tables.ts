import { posix } from "node:path";
import { hostPath } from "../host/paths.ts";
import { readProcFile } from "../host/proc.ts";

/** Enough for a node with thousands of pods. */
const MAX_BYTES = 4 * 1024 * 1024;

/** Whether a process has a directory of the node among its mounts, at any path. False if that cannot be read. */
export function hasMountOf(root: string, pid: number, dir: string): boolean {
  const onNode = mountsOf(root, 1)
    .filter(({ point }) => contains(point, dir))
    .reduce<Mount | undefined>((best, one) => (best && best.point.length > one.point.length ? best : one), undefined);
  if (onNode === undefined) return false;
  const inFileSystem = posix.join(onNode.root, posix.relative(onNode.point, dir));
  return mountsOf(root, pid).some((one) => one.device === onNode.device && contains(one.root, inFileSystem));
}

function mountsOf(root: string, pid: number): readonly Mount[] {
  const text = readProcFile(hostPath(root, `/proc/${pid}/mountinfo`), MAX_BYTES);
  return text.kind === "content" ? mountsIn(text.text) : [];
}

function contains(dir: string, path: string): boolean {
  return dir === "/" || path === dir || path.startsWith(`${dir}/`);
}

interface Mount {
  /** `major:minor` of the file system's device. */
  readonly device: string;
  /** The mounted directory within the file system. */
  readonly root: string;
  readonly point: string;
}

/** Lines of `/proc/<pid>/mountinfo`: `36 35 98:0 /root /point rw shared:1 - ext4 /dev/root rw`. */
function mountsIn(mountinfo: string): readonly Mount[] {
  return mountinfo.split("\n").flatMap((line) => {
    const [, , device, root, point] = line.split(" ");
    if (device === undefined || root === undefined || point === undefined) return [];
    return [{ device, root: unescaped(root), point: unescaped(point) }];
  });
}

/** Spaces, tabs, newlines and backslashes are octal. */
function unescaped(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
