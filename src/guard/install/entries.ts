import { accessSync, constants, readlinkSync, renameSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { resolveOnHost } from "../../host/paths.ts";
import { entriesIn } from "../../host/safe-fs.ts";
import { GUARD_BIN_DIR, GUARD_LAUNCHER } from "../home.ts";
import { removeFile } from "../state-files.ts";
import type { SearchPathMode } from "./search-path.ts";

/**
 * Plugins that others run for themselves, found without our directory: an entry would never be used. `loopback` has
 * nothing that a DEL could lack.
 */
const NOT_GUARDED = new Set([
  "host-local",
  "dhcp",
  "static",
  "whereabouts",
  "loopback",
  "calico-ipam",
  "nv-ipam",
  "spiderpool",
]);

/** The entry of a plugin on the search path: the guard, or the real plugin where ours is the only directory. */
export interface GuardEntry {
  readonly name: string;
  readonly target: string;
}

export function entriesFor(root: string, pluginDirs: readonly string[], mode: SearchPathMode): readonly GuardEntry[] {
  const found = new Map<string, string>();
  for (const dir of pluginDirs) {
    for (const { name } of entriesIn(resolveOnHost(root, dir, "follow"))) {
      if (!found.has(name) && isProgram(resolveOnHost(root, `${dir}/${name}`, "follow")))
        found.set(name, `${dir}/${name}`);
    }
  }
  return [...found].flatMap(([name, path]) => {
    if (!NOT_GUARDED.has(name)) return [{ name, target: GUARD_LAUNCHER }];
    return mode === "only" ? [{ name, target: path }] : [];
  });
}

/**
 * Each is renamed into place: no plugin is missing for a moment. Where ours is the only directory no entry is ever
 * removed, because a directory of plugins that is not mounted yet must not leave the runtime without any.
 */
export function updateEntries(root: string, entries: readonly GuardEntry[], mode: SearchPathMode): void {
  const dir = resolveOnHost(root, GUARD_BIN_DIR, "follow");
  for (const { name, target } of entries) {
    const path = join(dir, name);
    if (linkTarget(path) === target) continue;
    const draft = join(dir, `.${name}.new`);
    removeFile(draft);
    symlinkSync(target, draft);
    renameSync(draft, path);
  }
  if (mode === "only" || entries.length === 0) return;
  const wanted = new Set(entries.map(({ name }) => name));
  for (const { name } of entriesIn(dir)) {
    if (!wanted.has(name)) removeFile(join(dir, name));
  }
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

function isProgram(path: string): boolean {
  try {
    if (!statSync(path).isFile()) return false;
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
