import { rmSync } from "node:fs";
import { CRIO_CONFIG } from "../../host/distributions.ts";
import { resolveOnHost } from "../../host/paths.ts";
import { stringsIn } from "../../host/toml.ts";
import { GUARD_BIN_DIR, GUARD_HOME, GUARD_STATE_DIR } from "../home.ts";
import { removeFile } from "../state-files.ts";
import { configFiles, writeWhole } from "./install.ts";
import { digestOf, type Receipt, readReceipt } from "./receipt.ts";
import { withoutSlash } from "./search-path.ts";
import { editToml, tomlValue } from "./toml-edit.ts";

export type ConfigRestored =
  | { readonly kind: "restored" | "untouched"; readonly path: string | undefined }
  | { readonly kind: "refused"; readonly message: string; readonly next: string };

/** The configuration as it was, byte for byte, or without our directory if it was changed since. */
export function restoreConfig(root: string): ConfigRestored {
  const edit = readReceipt(root)?.edit;
  if (edit === undefined) return { kind: "untouched", path: undefined };
  const { path, before } = edit;
  const current = configFiles(root).read(path);
  if (current === undefined || !current.includes(GUARD_BIN_DIR)) return { kind: "untouched", path };
  if (digestOf(current) !== edit.after) return withoutOurs(root, edit, current);
  if (before === undefined) removeFile(resolveOnHost(root, path, "follow"));
  else writeWhole(root, path, before);
  return { kind: "restored", path };
}

const TABLES = [
  ["plugins", "io.containerd.cri.v1.runtime", "cni"],
  ["plugins", "io.containerd.grpc.v1.cri", "cni"],
  ["crio", "network"],
] as const;

/** Somebody has changed the file after install: only our directory leaves it. */
function withoutOurs(root: string, { path, before }: NonNullable<Receipt["edit"]>, current: string): ConfigRestored {
  let text = current;
  for (const table of TABLES) {
    for (const key of ["bin_dirs", "bin_dir", "plugin_dirs"]) {
      const value = tomlValue(text, table, key);
      const dirs = typeof value === "string" ? [value] : stringsIn(value);
      if (!dirs.some((dir) => withoutSlash(dir) === GUARD_BIN_DIR)) continue;
      const earlier = before === undefined ? undefined : tomlValue(before, table, key);
      const others = dirs.filter((dir) => withoutSlash(dir) !== GUARD_BIN_DIR);
      const rest = others.length > 0 ? others : typeof earlier === "string" ? earlier : undefined;
      const edited = editToml(text, { table, key, value: rest });
      if ("problem" in edited) return cannotRestore(path, edited.problem);
      text = edited.text;
    }
  }
  if (text.includes(GUARD_BIN_DIR)) return cannotRestore(path, "it still names the directory");
  writeWhole(root, path, text);
  return { kind: "restored", path };
}

function cannotRestore(path: string, problem: string): ConfigRestored {
  const what = path.startsWith(CRIO_CONFIG.dropIns) ? "plugin_dirs" : "bin_dirs or bin_dir";
  return {
    kind: "refused",
    message: `${path} was changed after the installation, and ${problem}. Nothing was removed.`,
    next: `Take ${GUARD_BIN_DIR} out of ${what} there by hand, then run this again.`,
  };
}

export function removeGuard(root: string): void {
  rmSync(resolveOnHost(root, GUARD_HOME, "keep"), { recursive: true, force: true });
  rmSync(resolveOnHost(root, GUARD_STATE_DIR, "keep"), { recursive: true, force: true });
}
