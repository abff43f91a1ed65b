import { dirname } from "node:path";
import type { Host } from "./distribution.ts";
import { filesFor, type InstallEntry, receiptPath } from "./files.ts";
import type { HookSettings } from "./hook-command.ts";
import type { HostFiles } from "./host-files.ts";
import { findInstalled } from "./installed.ts";
import { type Receipt, receiptIn } from "./receipt.ts";
import { authorship } from "./seal.ts";

/**
 * - `new`, `update`: to be written. `update` replaces what an earlier install wrote.
 * - `unchanged`: exists already.
 * - `changed`: ours, modified by an operator. `foreign`: not ours. Both are replaced only by force.
 * - `obsolete`: ours, and no longer needed, because the host runs another distribution now.
 */
export type State = "new" | "update" | "unchanged" | "changed" | "foreign" | "obsolete";

export interface Planned {
  readonly state: State;
  readonly path: string;
  /** Undefined if it is to be removed. */
  readonly entry?: InstallEntry;
}

export interface ExecutablePlan {
  readonly state: Exclude<State, "obsolete">;
  readonly path: string;
}

export interface InstallPlan {
  readonly entries: readonly Planned[];
  readonly executable: ExecutablePlan;
  /** To be created, parents first. */
  readonly directories: readonly string[];
}

/** Checksums of the executable. */
export interface Executables {
  /** Of this process. */
  readonly own: string;
  /** Of the installed one. */
  readonly there: string | undefined;
}

export function planInstall(
  host: Host,
  settings: HookSettings,
  files: HostFiles,
  executables: Executables,
): InstallPlan {
  const earlier = receiptIn(files.read(receiptPath(host)));
  const executable = planExecutable(settings.program, executables, earlier);
  // The paths do not depend on the receipt; the receipt depends on which directories they need.
  const paths = filesFor(host, settings, earlier).map(({ path }) => path);
  const directories = missingDirectories([...paths, settings.program], files);
  const receipt: Receipt = {
    ...(executable.state === "unchanged"
      ? earlier
      : { executable: { path: settings.program, sha256: executables.own } }),
    directories: [...new Set([...earlier.directories, ...directories])],
  };
  const wanted = filesFor(host, settings, receipt).map((entry) => {
    return { state: stateOf(entry, files), path: entry.path, entry } as const;
  });
  const obsolete = findInstalled(files).filter(({ path, isOurs }) => isOurs && !paths.includes(path));
  return {
    entries: [...obsolete.map(({ path }) => ({ state: "obsolete", path }) as const), ...wanted],
    executable,
    directories,
  };
}

function planExecutable(path: string, { own, there }: Executables, { executable }: Receipt): ExecutablePlan {
  if (there === undefined) return { path, state: "new" };
  if (there === own) return { path, state: "unchanged" };
  if (executable?.path !== path) return { path, state: "foreign" };
  return { path, state: executable.sha256 === there ? "update" : "changed" };
}

function stateOf(entry: InstallEntry, files: HostFiles): Exclude<State, "obsolete"> {
  const kind = files.kind(entry.path);
  if (kind === "absent") return "new";
  if (entry.kind === "link") return files.link(entry.path) === entry.target ? "unchanged" : "foreign";
  // An operator created this link, for example to /dev/null to disable the file.
  if (kind !== "file") return "foreign";
  const text = files.read(entry.path) ?? "";
  if (text === entry.content) return "unchanged";
  const author = authorship(text);
  return author === "ours" ? "update" : author;
}

function missingDirectories(paths: readonly string[], files: HostFiles): readonly string[] {
  const missing = new Set<string>();
  for (const path of paths) {
    for (let dir = dirname(path); dir !== "/" && files.kind(dir) === "absent"; dir = dirname(dir)) missing.add(dir);
  }
  return [...missing].sort();
}
