import { mkdtemp, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runOrThrow } from "./command.ts";

const SCRIPT_MS = 600_000;

/** $0 root file system, $1 mount point, $2 shared directory, $3 script. The changed files are in memory. */
const ENTER = `mount -t tmpfs tmpfs "$1" && mkdir "$1/upper" "$1/work" "$1/root" &&
  mount -t overlay overlay -o "lowerdir=$0,upperdir=$1/upper,workdir=$1/work" "$1/root" &&
  mount -t proc proc "$1/root/proc" && mount --bind /dev "$1/root/dev" && mount --bind "$2" "$1/root/mnt" &&
  exec chroot "$1/root" sh -ec "$3"`;

/** Runs a script as root in a Debian of `debianRootfs`, whose /mnt is `shared`. Nothing else that it changes is kept. */
export async function inDebian(
  rootfs: string,
  shared: string,
  script: string,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const point = await mkdtemp(join(tmpdir(), "unghost-debian-"));
  try {
    const enter = ["sh", "-c", ENTER, join(rootfs, "root"), point, shared, script];
    const { stdout } = await runOrThrow(["unshare", "--mount", "--pid", "--fork", "--kill-child", ...enter], {
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C", ...env },
      timeoutMs: SCRIPT_MS,
    });
    return stdout;
  } finally {
    await rmdir(point);
  }
}
