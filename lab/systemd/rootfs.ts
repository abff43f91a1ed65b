import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cached } from "../cache.ts";
import { runOrThrow } from "../command.ts";
import { unpackDebianPackages } from "../debian-packages.ts";
import { snapshotterFor } from "../node-disk.ts";
import { type Unavailable, whyNoRealNode } from "../tools.ts";

/** Debian 12 with systemd and containerd as its packages install them. */
export interface SystemdRootfs {
  readonly available: true;
  readonly path: string;
}

const SUITE = "bookworm";
const PACKAGES = [
  "systemd",
  "systemd-sysv",
  "dbus",
  "iproute2",
  "mount",
  "procps",
  "containerd",
  "runc",
  "containernetworking-plugins",
];
const BUILD_MS = 900_000;

/** Created once in the lab's cache by mmdebstrap, which is unpacked and not installed. */
export async function ensureSystemdRootfs(): Promise<SystemdRootfs | Unavailable> {
  const notHere =
    whyNoRealNode() ?? whyNoLayer() ?? missingProgram(["/usr/bin/perl", "/usr/bin/apt-get", "/usr/bin/dpkg"]);
  if (notHere !== undefined) return { available: false, reason: notHere };
  try {
    return { available: true, path: await debianRootfs("systemd-rootfs", PACKAGES) };
  } catch (error) {
    return { available: false, reason: `Debian with systemd could not be unpacked: ${(error as Error).message}` };
  }
}

/** Each node has its own overlay over the shared root file system. */
function whyNoLayer(): string | undefined {
  return snapshotterFor(tmpdir()) === "overlayfs"
    ? undefined
    : `${tmpdir()} is on an overlay, on which no other one can lie: set TMPDIR to a folder on a disk`;
}

function missingProgram(programs: readonly string[]): string | undefined {
  const missing = programs.filter((program) => !existsSync(program));
  return missing.length === 0
    ? undefined
    : `Debian is unpacked by mmdebstrap, which needs ${missing.join(", ")} on this machine`;
}

/** Debian 12 with these packages below `root` of a directory in the lab's cache. */
export function debianRootfs(name: string, packages: readonly string[]): Promise<string> {
  return cached(`${name}-${SUITE}`, async (dir) => {
    const tool = join(dir, ".mmdebstrap");
    const root = join(dir, ".root");
    await mkdir(tool);
    await unpackDebianPackages(["mmdebstrap"], tool);
    const options = ["--variant=essential", "--mode=root", `--include=${packages.join(",")}`];
    await runOrThrow(["perl", join(tool, "usr/bin/mmdebstrap"), ...options, SUITE, root], { timeoutMs: BUILD_MS });
    await rm(tool, { recursive: true });
    await rename(root, join(dir, "root"));
  });
}
