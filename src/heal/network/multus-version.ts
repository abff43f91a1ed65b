import { readFileSync, statSync } from "node:fs";

/** No multus is half as large; what is, is something else. */
const MAX_BINARY_BYTES = 256 * 1024 * 1024;

/**
 * The major version of multus, read from the binary and not asked of it: builds without version flags print nothing,
 * but every Go binary carries its module's path, and Go puts the major version there (`multus-cni.v4`).
 */
export function multusMajor(candidates: readonly string[]): number | undefined {
  for (const path of candidates) {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined || !stats.isFile() || stats.size > MAX_BINARY_BYTES) continue;
    return majorIn(readFileSync(path));
  }
  return undefined;
}

export function majorIn(binary: Buffer): number | undefined {
  const module = "k8snetworkplumbingwg/multus-cni.v";
  const at = binary.indexOf(module);
  if (at < 0) return undefined;
  const digits = /^\d{1,3}/.exec(binary.toString("latin1", at + module.length, at + module.length + 3));
  return digits === null ? undefined : Number(digits[0]);
}
