import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runOrThrow } from "./command.ts";
import { findMkfs } from "./mkfs.ts";
import type { LabNode } from "./node.ts";

/** A separate, throttled disk below one directory of a node. */
export interface SlowDisk {
  /** Must be called before the node is destroyed, because the device number is reused. */
  release(): void;
}

const THROTTLE = "blkio.throttle.write_iops_device";
const ROOT = "/sys/fs/cgroup/blkio";
const IMAGE_BYTES = 512 * 1024 ** 2;

/** Why this machine cannot throttle a loop device; undefined if it can. */
export function whyNoSlowDisk(): string | undefined {
  return existsSync(join(ROOT, THROTTLE)) ? undefined : `this machine cannot throttle a disk (${ROOT}/${THROTTLE})`;
}

/** An ext4 at `inNode` that is limited to this many writes per second, of the node's processes and of the kernel. */
export async function mountSlowDisk(node: LabNode, inNode: string, writesPerSecond: number): Promise<SlowDisk> {
  const image = join(node.dir, "slow-disk.img");
  const { command, env } = await findMkfs("ext4");
  await writeFile(image, "");
  await truncate(image, IMAGE_BYTES);
  await runOrThrow([...command, image], { env });
  const { stdout } = await runOrThrow(["losetup", "--find", "--show", image]);
  const device = stdout.trim();
  const minor = device.replace("/dev/loop", "");
  try {
    const script = 'mkdir -p "$1" && mknod /dev/slow b 7 "$2" && mount -t ext4 /dev/slow "$1"';
    await node.check(["sh", "-c", script, "sh", inNode, minor]);
  } finally {
    // While it is mounted, this takes effect at the unmount.
    await runOrThrow(["losetup", "--detach", device]);
  }
  const limit = (writes: number): void => {
    for (const group of [ROOT, join(ROOT, blkioGroupOf(node))])
      writeFileSync(join(group, THROTTLE), `7:${minor} ${writes}`);
  };
  const release = (): void => {
    limit(0);
    process.removeListener("exit", release);
  };
  process.once("exit", release);
  limit(writesPerSecond);
  return { release };
}

function blkioGroupOf({ initPid }: LabNode): string {
  const line = readFileSync(`/proc/${initPid}/cgroup`, "utf8")
    .split("\n")
    .find((group) => group.split(":")[1] === "blkio");
  return line?.split(":")[2] ?? "/";
}
