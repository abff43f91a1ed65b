import { readdirSync } from "node:fs";
import { basename, dirname } from "node:path";
import { type FileIdentity, lookAt } from "./file-identity.ts";
import { type HeldDirectory, holdDirectory } from "./held-directory.ts";

/** One file of a container's log: the current one, or one that kubelet rotated (`0.log.20240131-101530`, later .gz). */
export interface LogFile {
  readonly name: string;
  readonly identity: FileIdentity;
}

export interface LogDirectory {
  readonly directory: HeldDirectory;
  readonly files: readonly LogFile[];
  readonly skipped: readonly string[];
}

/** The log and its rotated siblings, the current one first, then newest first. The string says why there are none. */
export function findLogFiles(hostRoot: string, logPath: string): LogDirectory | string {
  const held = holdDirectory(hostRoot, dirname(logPath));
  if (!held.ok) return held.refusal.message;
  if (held.value === undefined) return `${logPath} is not there.`;
  const directory = held.value;
  const current = basename(logPath);
  const files: LogFile[] = [];
  const skipped: string[] = [];
  try {
    for (const name of readdirSync(directory.entry("."))) {
      if (name !== current && !name.startsWith(`${current}.`)) continue;
      const found = lookAt(directory.entry(name));
      if (found.what === "file") files.push({ name, identity: found.identity });
      if (found.what === "odd") skipped.push(`${dirname(logPath)}/${name} is ${found.kind}.`);
    }
  } catch (thrown) {
    directory.close();
    throw thrown;
  }
  files.sort((one, other) => rank(one, current) - rank(other, current) || newestFirst(one, other));
  return { directory, files, skipped };
}

function rank(file: LogFile, current: string): number {
  return file.name === current ? 0 : 1;
}

function newestFirst(one: LogFile, other: LogFile): number {
  return Number(other.identity.mtimeNs - one.identity.mtimeNs);
}
