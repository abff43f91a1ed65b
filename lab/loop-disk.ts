import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run, runOrThrow } from "./command.ts";
import { findMkfs, type Mkfs } from "./mkfs.ts";
import { blankOf, recordedImage } from "./recorded-disk.ts";
import { whyNoRealNode } from "./tools.ts";

/** A separate file system, so that a power cut loses unsynced data. */
export type LoopFileSystem = "ext4" | "xfs";

/** btrfs cannot be shut down in one instant. */
export type RecordedFileSystem = LoopFileSystem | "btrfs";

/** A node's disk on a loop device, mounted on this machine while the node exists. */
export interface LoopDisk {
  /** From now on nothing more reaches the disk: neither data nor the file system's journal. */
  freeze(): Promise<void>;
  /** Mounts the disk as it was when it was frozen, like a booting machine. */
  remount(): Promise<void>;
}

/** Sparse: only what is written takes space. */
const IMAGE_BYTES = 2 * 1024 ** 3;
/** Only a hang guard: mounting waits for every other writer of a busy machine. */
const COMMAND_MS = 600_000;

/**
 * XFS_IOC_GOINGDOWN with NOLOGFLUSH, which ext4 has under the same number. File systems are tested against power cuts
 * with it: no write in flight, no journal commit. perl-base is part of every Debian; Node has no ioctl.
 */
const GO_DOWN = `open(my $dir, "<", $ARGV[0]) or die "$!"; my $how = pack("L", 2); ioctl($dir, 0x8004587d, $how) or die "$!";`;

/** Makes and mounts the disk of a node so that each of its writes is recorded. */
export async function createRecordedDisk(nodeDir: string, kind: RecordedFileSystem): Promise<void> {
  const image = imageOf(nodeDir);
  const mountPoint = join(nodeDir, "disk");
  await makeImage(await findMkfs(kind), image, IMAGE_BYTES);
  await copyImage(image, blankOf(image));
  await mkdir(mountPoint);
  await mountImage(await recordedImage(nodeDir, image), mountPoint, kind);
}

/** The image of a node's disk on a loop device. */
export function imageOf(nodeDir: string): string {
  return join(nodeDir, "disk.img");
}

/** Mounts a copy of a disk that a node had. */
export async function restoreDisk(nodeDir: string, from: string, kind: RecordedFileSystem): Promise<void> {
  const mountPoint = join(nodeDir, "disk");
  await copyImage(from, imageOf(nodeDir));
  await mkdir(mountPoint);
  await mountImage(imageOf(nodeDir), mountPoint, kind);
}

/** Why no disk can be recorded here; undefined if one can. */
export function whyNoRecordedDisk(): string | undefined {
  const why = whyNoRealNode();
  if (why !== undefined) return why;
  return ["/dev/loop-control", "/dev/fuse"]
    .filter((one) => !existsSync(one))
    .map((one) => `this machine has no ${one}`)[0];
}

/** Makes and mounts the disk of a node at `<nodeDir>/disk`. */
export async function createLoopDisk(nodeDir: string, kind: LoopFileSystem): Promise<LoopDisk> {
  const image = imageOf(nodeDir);
  const mountPoint = join(nodeDir, "disk");
  await makeImage(await findMkfs(kind), image, IMAGE_BYTES);
  await mkdir(mountPoint);
  await mountImage(image, mountPoint, kind);
  return {
    freeze: async () => {
      await runOrThrow(["perl", "-e", GO_DOWN, mountPoint], { timeoutMs: COMMAND_MS });
    },
    remount: async () => {
      // A copy, not the same file again: if a mount namespace still holds the frozen file system, the kernel would
      // return that one instead of recovering the journal.
      const copy = `${image}.new`;
      await copyImage(image, copy);
      unmountBelow(nodeDir);
      await rename(copy, image);
      await mountImage(image, mountPoint, kind);
    },
  };
}

/**
 * Unmounts everything below a node's directory; the loop device is removed with its mount. Works without the event
 * loop.
 */
export function unmountBelow(nodeDir: string): void {
  const points = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((point) => point.startsWith(`${nodeDir}/`))
    .toReversed();
  for (const point of points) {
    const { status, stderr } = spawnSync("umount", ["--lazy", point], { encoding: "utf8", timeout: COMMAND_MS });
    if (status !== 0) throw new Error(`could not unmount ${point}: ${stderr.trim()}`);
  }
}

const answers = new Map<LoopFileSystem, Promise<string | undefined>>();

/** Why no disk of this kind can be created here; undefined if it can. Checked once by creating a small one. */
export function whyNoLoopDisk(kind: LoopFileSystem): Promise<string | undefined> {
  const known = answers.get(kind) ?? tryLoopDisk(kind);
  answers.set(kind, known);
  return known;
}

async function tryLoopDisk(kind: LoopFileSystem): Promise<string | undefined> {
  const why = whyNoRealNode();
  if (why !== undefined) return why;
  if (!existsSync("/dev/loop-control")) return "this machine has no loop devices (/dev/loop-control)";
  const perl = await run(["perl", "-e", "1"]).catch(() => undefined);
  if (perl?.code !== 0) return "a power cut needs perl to shut the file system down, and none was found";
  const dir = await mkdtemp(join(tmpdir(), "unghost-loop-"));
  try {
    // As small as the file system permits: xfs refuses less than 300 MB.
    await makeImage(await findMkfs(kind), join(dir, "disk.img"), kind === "xfs" ? 512 * 1024 ** 2 : 16 * 1024 ** 2);
    await mkdir(join(dir, "disk"));
    await mountImage(join(dir, "disk.img"), join(dir, "disk"), kind);
    await runOrThrow(["perl", "-e", GO_DOWN, join(dir, "disk")]);
    return undefined;
  } catch (error) {
    return `no ${kind} on a loop device: ${(error as Error).message}`;
  } finally {
    unmountBelow(dir);
    await rm(dir, { recursive: true, force: true });
  }
}

async function makeImage({ command, env }: Mkfs, image: string, bytes: number): Promise<void> {
  await writeFile(image, "");
  await truncate(image, bytes);
  await runOrThrow([...command, image], { env, timeoutMs: COMMAND_MS });
}

export async function copyImage(image: string, copy: string): Promise<void> {
  await runOrThrow(["cp", "--sparse=always", "--reflink=auto", image, copy], { timeoutMs: COMMAND_MS });
}

/** Mounts a file system as a booting machine does: it recovers its journal. */
export async function mountImage(image: string, mountPoint: string, kind: RecordedFileSystem): Promise<void> {
  // The file system's default options, as on real nodes. xfs refuses a UUID that is mounted, and a mount namespace of a
  // process that is still exiting may hold the frozen file system.
  const options = kind === "xfs" ? "loop,nouuid" : "loop";
  await runOrThrow(["mount", "-o", options, image, mountPoint], { timeoutMs: COMMAND_MS });
  await runOrThrow(["mount", "--make-private", mountPoint], { timeoutMs: COMMAND_MS });
}
