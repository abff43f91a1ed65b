import nodeFs from "node:fs";
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

/** Runs with some functions of node:fs/promises replaced: a failing disk, or a concurrent writer. */
export function withFileSystem<T>(replaced: Partial<typeof fs>, run: () => Promise<T>): Promise<T> {
  return withReplaced(fs, replaced, run);
}

/** Runs on a disk where each fsync takes a while; `synced` gets the path once it has ended. */
export function withSlowSync<T>(synced: (path: string) => void, run: () => Promise<T>): Promise<T> {
  const slow = (fd: number, callback: (error: Error | null) => void): void => {
    const path = nodeFs.readlinkSync(`/proc/self/fd/${fd}`);
    setTimeout(() => {
      synced(path);
      callback(null);
    }, 20);
  };
  return withReplaced(nodeFs, { fsync: slow }, run);
}

async function withReplaced<T>(module: object, replaced: object, run: () => Promise<T>): Promise<T> {
  const real = Object.fromEntries(Object.entries(module).filter(([name]) => name in replaced));
  Object.assign(module, replaced);
  syncBuiltinESMExports();
  try {
    return await run();
  } finally {
    Object.assign(module, real);
    syncBuiltinESMExports();
  }
}

export function diskError(code = "EIO"): Error {
  return Object.assign(new Error(`${code}: the disk fails`), { code });
}
