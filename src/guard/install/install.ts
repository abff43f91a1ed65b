import { chmodSync, copyFileSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { resolveOnHost } from "../../host/paths.ts";
import { fileText, readRegularFile, statsOf } from "../../host/safe-fs.ts";
import { provePath } from "../../host/trusted-path.ts";
import {
  GUARD_BIN_DIR,
  GUARD_HOME,
  GUARD_LAUNCHER,
  GUARD_PROGRAM,
  GUARD_STATE_DIR,
  GUARD_STATE_DIRECTORIES,
  PLUGIN_DIRS_FILE,
} from "../home.ts";
import { removeFile, syncStateDirectory } from "../state-files.ts";
import { entriesFor, updateEntries } from "./entries.ts";
import { digestOf, type Receipt, readReceipt, writeReceipt } from "./receipt.ts";
import { type ConfigFiles, type RunningRuntime, realDirs, type SearchPathPlan } from "./search-path.ts";

export interface GuardParts {
  readonly launcher: Buffer;
  /** The executable of unghost, which decides about DELs that failed. */
  readonly program: string;
}

export function configFiles(root: string): ConfigFiles {
  return {
    read: (path) => {
      const file = readRegularFile(resolveOnHost(root, path, "follow"));
      if (file.kind === "gone") return undefined;
      if (file.kind === "content") return file.text;
      throw new Error(`${path} ${file.reason}`);
    },
  };
}

/**
 * First the directory and then the configuration that names it: a runtime that starts in between finds its plugins.
 * What was there before is in the receipt.
 */
export function installGuard(root: string, runtime: RunningRuntime, plan: SearchPathPlan, parts: GuardParts): void {
  for (const dir of [GUARD_HOME, GUARD_BIN_DIR]) mkdirSync(place(root, dir), { recursive: true, mode: 0o755 });
  // unghost keeps its own state in the directory above, which only root may read.
  mkdirSync(place(root, dirname(GUARD_STATE_DIR)), { recursive: true, mode: 0o700 });
  for (const dir of ["", ...GUARD_STATE_DIRECTORIES])
    mkdirSync(place(root, `${GUARD_STATE_DIR}/${dir}`), { recursive: true, mode: 0o700 });
  for (const dir of [GUARD_BIN_DIR, ...["", ...GUARD_STATE_DIRECTORIES].map((name) => `${GUARD_STATE_DIR}/${name}`)])
    requireOurs(root, dir);
  const pluginDirs = keepKnown(root, realDirs(runtime), plan.mode);
  writeWhole(root, PLUGIN_DIRS_FILE, `${pluginDirs.join("\n")}\n`, 0o644);
  replaceFile(root, GUARD_PROGRAM, (draft) => copyFileSync(parts.program, draft), 0o755);
  replaceFile(root, GUARD_LAUNCHER, (draft) => writeFileSync(draft, parts.launcher), 0o755);
  updateEntries(root, entriesFor(root, pluginDirs, plan.mode), plan.mode);
  const earlier = readReceipt(root);
  if (plan.kind !== "edit") {
    writeReceipt(root, { version: 1, mode: plan.mode, edit: earlier?.edit });
    return;
  }
  writeReceipt(root, { version: 1, mode: plan.mode, edit: editOf(plan, earlier) });
  mkdirSync(place(root, dirname(plan.path)), { recursive: true, mode: 0o755 });
  writeWhole(root, plan.path, plan.after);
}

/** The runtime executes what is in them as root, and so does the guard. */
function requireOurs(root: string, path: string): void {
  const trust = provePath(root, path);
  if (trust.kind === "refused") throw new Error(`${trust.detail}. ${trust.next}`);
  if (statsOf(resolveOnHost(root, path, "keep"))?.isSymbolicLink() === true)
    throw new Error(`${path} is a link. Remove it`);
}

/** Where ours is the only directory the runtime does not report the others any more. */
function keepKnown(root: string, dirs: readonly string[], mode: Receipt["mode"]): readonly string[] {
  const known = pluginDirsOn(root);
  return mode === "only" && known.length > 0 ? known : dirs;
}

export function pluginDirsOn(root: string): readonly string[] {
  return fileText(resolveOnHost(root, PLUGIN_DIRS_FILE, "follow"))
    .split("\n")
    .filter(Boolean);
}

/** A second install over an edit of ours keeps what was there before the first. */
function editOf(plan: Extract<SearchPathPlan, { kind: "edit" }>, earlier: Receipt | undefined): Receipt["edit"] {
  const { path, before, after } = plan;
  const isOurs = earlier?.edit?.path === path && before !== undefined && digestOf(before) === earlier.edit.after;
  return { path, before: isOurs ? earlier.edit?.before : before, after: digestOf(after) };
}

/** Whole and durable, with the mode of the file that it replaces. */
export function writeWhole(root: string, path: string, text: string, mode?: number): void {
  const old = statsOf(place(root, path));
  const wanted = mode ?? (old === undefined ? 0o644 : old.mode & 0o777);
  replaceFile(root, path, (draft) => writeFileSync(draft, text, { flush: true }), wanted);
}

function replaceFile(root: string, path: string, make: (draft: string) => void, mode: number): void {
  const target = place(root, path);
  const draft = `${target}.unghost-new`;
  removeFile(draft);
  try {
    make(draft);
    chmodSync(draft, mode);
    renameSync(draft, target);
  } catch (error) {
    removeFile(draft);
    throw error;
  }
  syncStateDirectory(dirname(target));
}

function place(root: string, path: string): string {
  return resolveOnHost(root, path, "follow");
}
