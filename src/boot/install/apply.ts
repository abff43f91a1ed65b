import { closeSync, constants, existsSync, openSync, readSync } from "node:fs";
import { copyFile, lstat, mkdir, open, rename, rm, rmdir, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { sha256 } from "../../heal/quarantine/file-identity.ts";
import { syncDirectory } from "../../heal/state/durable-files.ts";
import { failureOf, runChild } from "../../host/child.ts";
import { resolveOnHost } from "../../host/paths.ts";
import { errorCode } from "../../host/source.ts";
import type { InstallEntry } from "./files.ts";
import { AGENT_UNIT, KEEP_UNIT } from "./units.ts";

/**
 * All changes of install and uninstall on a host. Paths are the host's. Every file is written under another name and
 * renamed, so that neither a power cut nor a full disk leaves an incomplete unit.
 */
export interface HostWriter {
  makeDirectory(path: string): Promise<void>;
  write(entry: InstallEntry): Promise<void>;
  copyExecutable(from: string, to: string): Promise<void>;
  /** Files and links only; a missing one is not an error. */
  remove(path: string): Promise<void>;
  /** Returns whether it was empty and was removed. */
  removeEmptyDirectory(path: string): Promise<boolean>;
  removeTree(path: string): Promise<void>;
}

const NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

export function hostWriter(hostRoot: string): HostWriter {
  const place = (path: string): string => join(resolveOnHost(hostRoot, dirname(path), "follow"), basename(path));
  return {
    makeDirectory: async (path) => {
      await mkdir(place(path), { mode: 0o755, recursive: true });
    },
    write: (entry) => {
      return replace(place(entry.path), (draft) =>
        entry.kind === "link" ? symlink(entry.target, draft) : writeNew(draft, entry.content, entry.mode),
      );
    },
    // Copied, not moved: under SELinux a moved file keeps the label of a home directory, and systemd may not run it.
    copyExecutable: (from, to) => {
      return replace(place(to), async (draft) => {
        await copyFile(from, draft, constants.COPYFILE_EXCL);
        await finish(draft, 0o755);
      });
    },
    remove: async (path) => {
      await rm(place(path), { force: true });
    },
    removeEmptyDirectory: async (path) => {
      try {
        await rmdir(place(path));
        return true;
      } catch (thrown) {
        if (["ENOENT", "ENOTEMPTY", "EEXIST", "ENOTDIR"].includes(errorCode(thrown) ?? "")) return false;
        throw thrown;
      }
    },
    removeTree: async (path) => {
      await rm(place(path), { recursive: true, force: true });
    },
  };
}

async function replace(path: string, make: (draft: string) => Promise<void>): Promise<void> {
  const draft = join(dirname(path), `.${basename(path)}.unghost-draft`);
  await rm(draft, { force: true });
  try {
    await make(draft);
    const there = await lstat(path).catch(() => undefined);
    if (there?.isDirectory()) throw new Error(`${path} is a directory`);
    await rename(draft, path);
  } catch (thrown) {
    await rm(draft, { force: true });
    throw thrown;
  }
  await syncDirectory(dirname(path));
}

async function writeNew(path: string, content: string, mode: number): Promise<void> {
  const handle = await open(path, NEW, mode);
  try {
    await handle.writeFile(content);
  } finally {
    await handle.close();
  }
  await finish(path, mode);
}

/** The mode of a unit must not depend on the caller's umask. */
async function finish(path: string, mode: number): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    await handle.chmod(mode);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const CHUNK = 1024 * 1024;

/** Checksum of the executable on the host; undefined if it does not exist. */
export function executableOnHost(hostRoot: string, path: string): string | undefined {
  try {
    return checksumOfFile(resolveOnHost(hostRoot, path, "follow"));
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT" || errorCode(thrown) === "ENOTDIR") return undefined;
    throw thrown;
  }
}

export function checksumOfFile(path: string): string {
  const hash = sha256();
  const buffer = Buffer.allocUnsafe(CHUNK);
  const fd = openSync(path, "r");
  try {
    for (let count = readSync(fd, buffer); count > 0; count = readSync(fd, buffer)) {
      hash.update(buffer.subarray(0, count));
    }
  } finally {
    closeSync(fd);
  }
  return hash.digest("hex");
}

/** Commands of the service manager around a change of its files. */
export interface ManagerCommands {
  readonly before: readonly (readonly string[])[];
  readonly after: readonly (readonly string[])[];
}

const NOTHING: ManagerCommands = { before: [], after: [] };
const RELOAD = ["systemctl", "daemon-reload"];

/**
 * Nothing has to be enabled: drop-ins of the runtime's unit want ours. OpenRC reads its directories again on its own.
 */
export function installCommands(paths: readonly string[]): ManagerCommands {
  if (!paths.some(isSystemds)) return NOTHING;
  const has = (unit: string): boolean => paths.some((path) => path.endsWith(`/${unit}`));
  // A running agent is restarted with the new version.
  const restart = has(AGENT_UNIT) ? [["systemctl", "restart", AGENT_UNIT]] : [];
  // The keeper disrupts no pod, and pods created before the next boot need it, too.
  const keep = has(KEEP_UNIT) ? [["systemctl", "restart", KEEP_UNIT]] : [];
  return { before: [], after: [RELOAD, ...restart, ...keep] };
}

export function uninstallCommands(paths: readonly string[]): ManagerCommands {
  if (!paths.some(isSystemds)) return NOTHING;
  const units = paths.map((path) => path.slice(path.lastIndexOf("/") + 1)).filter((name) => name.endsWith(".service"));
  return { before: units.length === 0 ? [] : [["systemctl", "stop", ...units]], after: [RELOAD] };
}

function isSystemds(path: string): boolean {
  return path.startsWith("/etc/systemd/");
}

/** As documented by systemd (sd_booted). */
export function systemdRuns(): boolean {
  return existsSync("/run/systemd/system");
}

const COMMAND_MS = 60_000;

export type RunCommand = (command: readonly string[]) => Promise<string | undefined>;

/** Returns the error output, or undefined. */
export const runCommand: RunCommand = async (command) => {
  const result = await runChild(command, { timeoutMs: COMMAND_MS });
  const failure = failureOf(result);
  if (failure === undefined) return undefined;
  return result.stderr.trim() || `${command[0]} ${failure}`;
};
