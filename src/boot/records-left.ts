import { readMetadataFile } from "../snapshot/metadata-file.ts";
import type { RuntimeFiles } from "./runtime-files.ts";

/** - `none`: the runtime listed every sandbox with a record. */
export type RecordsLeft =
  | { readonly kind: "none" }
  | { readonly kind: "left"; readonly ids: readonly string[] }
  | { readonly kind: "unknown"; readonly reason: string };

/**
 * Reads the database itself after the temporary runtime has stopped: sandboxes with a record that it did not list are
 * visible only there.
 */
export function recordsLeft(files: RuntimeFiles, hostRoot: string, listed: readonly string[]): RecordsLeft {
  const metadata = readMetadataFile({ hostRoot, containerdRoot: files.root });
  if (metadata.status === "absent") return { kind: "none" };
  if (metadata.status === "failed") return { kind: "unknown", reason: metadata.error.message };
  const { records, sandboxes, damage } = metadata.value;
  if (damage.length > 0) return { kind: "unknown", reason: `${metadata.value.path} is damaged` };
  const known = new Set(listed);
  const stored = [...records.filter(({ kind }) => kind === "sandbox"), ...sandboxes].map(({ id }) => id);
  const ids = [...new Set(stored)].filter((id) => !known.has(id));
  return ids.length === 0 ? { kind: "none" } : { kind: "left", ids };
}
