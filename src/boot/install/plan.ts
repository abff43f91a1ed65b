import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isKernelLocked } from "../../heal/state/kernel-lock.ts";
import { type Outcome, ok, refuse } from "../../heal/state/outcome.ts";
import { findStateDir } from "../../heal/state/state-dir.ts";
import { errorCode } from "../../host/source.ts";
import { type HostFiles, INIT_DIR } from "./detect.ts";
import {
  authorship,
  filesFor,
  type InstallEntry,
  NO_RECEIPT,
  type Receipt,
  receiptIn,
  receiptPath,
  SYSTEM_DIR,
} from "./files.ts";
import type { HookSettings, Host } from "./hook.ts";
import { AGENT_DROP_IN, DROP_IN } from "./units.ts";

export interface Installed {
  readonly path: string;
  /** Contains our line, modified or not; for a link: it leads to our script. */
  readonly isOurs: boolean;
}

/** Directories of drop-ins that may be removed with their last one. */
export const DROP_IN_DIR = /\.(?:service|target)\.d$/;
const RUNLEVELS = "/etc/runlevels";
const OWN_UNIT = /^unghost-[a-z-]+\.service$/;
const OWN_SCRIPT = /^unghost-[a-z-]+$/;

/**
 * Every file that may be ours, found by its path and not by what the host runs: the distribution may be gone, and its
 * hook must still be removed. Active files come before the files they refer to.
 */
export function findInstalled(files: HostFiles): readonly Installed[] {
  const inSystem = files.names(SYSTEM_DIR);
  const dropIns = inSystem
    .filter((name) => name.endsWith(".service.d"))
    .map((name) => `${SYSTEM_DIR}/${name}/${DROP_IN}`);
  const units = inSystem.filter((name) => OWN_UNIT.test(name)).map((name) => `${SYSTEM_DIR}/${name}`);
  const scripts = files.names(INIT_DIR).filter((name) => OWN_SCRIPT.test(name));
  const links = files.names(RUNLEVELS).flatMap((level) => {
    const names = files.names(`${RUNLEVELS}/${level}`).filter((name) => OWN_SCRIPT.test(name));
    return names.map((name) => {
      const path = `${RUNLEVELS}/${level}/${name}`;
      return { path, isOurs: files.link(path) === `${INIT_DIR}/${name}` };
    });
  });
  const texts = [
    ...dropIns,
    `${SYSTEM_DIR}/${AGENT_DROP_IN}`,
    ...units,
    ...scripts.map((name) => `${INIT_DIR}/${name}`),
  ];
  const found = texts.filter((path) => files.kind(path) !== "absent");
  return [...links, ...found.map((path) => ({ path, isOurs: isWholeFileOurs(path, files) }))];
}

/** The directory of a drop-in goes with it. */
function isStillUsed(directory: string, paths: readonly string[]): boolean {
  return !DROP_IN_DIR.test(directory) || paths.some((path) => dirname(path) === directory);
}

function isWholeFileOurs(path: string, files: HostFiles): boolean {
  return files.kind(path) === "file" && authorship(files.read(path) ?? "") !== "foreign";
}

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
    directories: [...new Set([...earlier.directories.filter((dir) => isStillUsed(dir, paths)), ...directories])],
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

export interface UninstallPlan {
  /** In the order of removal; the one with the receipt last, so that an interrupted run can be repeated. */
  readonly remove: readonly string[];
  /** Files with our name, without our line. */
  readonly foreign: readonly string[];
  /** The executable that install copied. */
  readonly executable: Receipt["executable"];
  /** Removed if they are empty then, children first. */
  readonly directories: readonly string[];
}

const RECEIPT_PATHS = [receiptPath({ manager: "systemd" }), receiptPath({ manager: "openrc" })];

export function planUninstall(files: HostFiles): UninstallPlan {
  const installed = findInstalled(files);
  const ours = installed.filter(({ isOurs }) => isOurs).map(({ path }) => path);
  const withReceipt = ours.filter((path) => RECEIPT_PATHS.includes(path));
  const receipt = withReceipt.map((path) => receiptIn(files.read(path))).find((found) => found !== NO_RECEIPT);
  const dropInDirs = ours.map((path) => dirname(path)).filter((dir) => DROP_IN_DIR.test(dir));
  const directories = new Set([...dropInDirs, ...(receipt?.directories ?? [])]);
  return {
    remove: [...ours.filter((path) => !withReceipt.includes(path)), ...withReceipt],
    foreign: installed.filter(({ isOurs }) => !isOurs).map(({ path }) => path),
    executable: receipt?.executable,
    // Longer paths first: a child is always longer than its parent.
    directories: [...directories].sort((a, b) => b.length - a.length),
  };
}

/** Every used state directory contains one of these. Without one, --state-dir names the wrong directory. */
const STATE_ENTRIES = ["journal", "quarantine", "boot.json"];

/** Whether the state directory may be deleted: it has the only copies of quarantined files. */
export async function mayPurge(
  { hostRoot, stateDir, uid }: { readonly hostRoot: string; readonly stateDir: string; readonly uid: number },
  force: boolean,
): Promise<Outcome<"there" | "absent">> {
  const found = await findStateDir(join(hostRoot, stateDir), uid);
  if (!found.ok) return found;
  if (found.value === undefined) return ok("absent");
  const { root, quarantine, lock } = found.value;
  const names = await readdir(root);
  if (names.length > 0 && !names.some((name) => STATE_ENTRIES.includes(name))) {
    return refuse(
      `${root} is not recognised as a state directory of unghost.`,
      "Check --state-dir, or delete it by hand.",
    );
  }
  if (force) return ok("there");
  if (await isKernelLocked(lock)) {
    return refuse(`${root} is locked: a run is under way.`, "Wait for it, or use --force.");
  }
  const kept = await namesIn(quarantine);
  if (kept.length === 0) return ok("there");
  const files = kept.length === 1 ? "1 entry that" : `${kept.length} entries that`;
  return refuse(
    `${quarantine} holds ${files} healing had moved away; deleting it makes that final.`,
    "Put back what is still wanted (unghost history, unghost undo), or use --force.",
  );
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return [];
    throw thrown;
  }
}
