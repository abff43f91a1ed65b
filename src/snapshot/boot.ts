import { hostPath } from "../host/paths.ts";
import { parseStat, readProcFile } from "../host/proc.ts";
import { failed, read, type Source } from "../host/source.ts";
import type { Boot } from "./types/snapshot.ts";

export function readBoot(where: { readonly root: string; readonly now: Date }): Source<Boot> {
  const path = "/proc/sys/kernel/random/boot_id";
  const id = readProcFile(hostPath(where.root, path));
  if (id.kind !== "content" || id.text.trim() === "") {
    return failed(`${path} could not be read: it is not known which boot of the node this is`, mountProc(where.root));
  }
  const uptimeSeconds = readUptime(where.root);
  if (uptimeSeconds === undefined) {
    return failed(
      "/proc/uptime could not be read: it is not known how long the node has been up",
      mountProc(where.root),
    );
  }
  return read({
    id: id.text.trim(),
    uptimeSeconds,
    startedAt: new Date(where.now.getTime() - uptimeSeconds * 1000),
  });
}

function mountProc(root: string): string {
  return `check that the node's /proc is mounted at ${hostPath(root, "/proc")}`;
}

/**
 * Seconds since the kernel started, on the clock of process start times. In an LXC container /proc/uptime is the age of
 * the container instead; the kernel cannot be younger than this process.
 */
export function readUptime(root: string): number | undefined {
  const uptime = readProcFile(hostPath(root, "/proc/uptime"));
  if (uptime.kind !== "content") return undefined;
  const seconds = Number.parseFloat(uptime.text);
  if (!Number.isFinite(seconds)) return undefined;
  const self = readProcFile(hostPath(root, "/proc/self/stat"));
  const started = self.kind === "content" ? parseStat(self.text)?.startedSecondsAfterBoot : undefined;
  return started === undefined ? seconds : Math.max(seconds, started + process.uptime());
}
