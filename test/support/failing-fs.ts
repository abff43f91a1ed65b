import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

/** Runs with some functions of node:fs/promises replaced: a disk that fails, or somebody who is quicker. */
export async function withFileSystem<T>(replaced: Partial<typeof fs>, run: () => Promise<T>): Promise<T> {
  const real = { ...fs };
  Object.assign(fs, replaced);
  syncBuiltinESMExports();
  try {
    return await run();
  } finally {
    Object.assign(fs, real);
    syncBuiltinESMExports();
  }
}

export function diskError(code = "EIO"): Error {
  return Object.assign(new Error(`${code}: the disk fails`), { code });
}
