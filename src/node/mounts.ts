import { hostPath } from "../host/paths.ts";
import { procText } from "../host/proc.ts";

export interface Mount {
  /** `major:minor` of the file system's device. */
  readonly device: string;
  /** The mounted directory within the file system. */
  readonly root: string;
  readonly point: string;
}

const MAX_BYTES = 4 * 1024 * 1024;

/** The mounts that a process has; those of the node itself are of process 1. Empty if they cannot be read. */
export function mountsOf(root: string, pid: number): readonly Mount[] {
  return mountsIn(procText(hostPath(root, `/proc/${pid}/mountinfo`), MAX_BYTES));
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
