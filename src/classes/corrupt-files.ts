import type { ScratchFile } from "../snapshot/types.ts";
import type { Step } from "./step.ts";

/** A cache file that cannot be parsed, and may be moved away because of it. */
export type BrokenFile = ScratchFile & { readonly health: "empty" | "corrupt" };

export function isBroken<T extends ScratchFile>(file: T): file is T & BrokenFile {
  return file.health === "empty" || file.health === "corrupt";
}

export function brokenInWords(file: BrokenFile): string {
  return file.health === "empty" ? `${file.path} is empty` : `${file.path} (${file.size} bytes) is not valid JSON`;
}

export function quarantineStep(file: BrokenFile): Step {
  return { kind: "quarantine-file", path: file.path, health: file.health };
}
