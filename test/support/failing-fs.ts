import nodeFs from "node:fs";
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

/** Runs with some functions of node:fs/promises replaced: a disk that fails, or somebody who is quicker. */
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
  return withReplaced(nodeFs, { fsync: Object.assign(slow, { __promisify__: nodeFs.fsync.__promisify__ }) }, run);
}

async function withReplaced<M extends object, T>(module: M, replaced: Partial<M>, run: () => Promise<T>): Promise<T> {
  const real = Object.fromEntries(Object.keys(replaced).map((name) => [name, Reflect.get(module, name)]));
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
