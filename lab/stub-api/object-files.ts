import { globSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type ApiObject, isApiObject } from "./api-object.ts";
import type { Store } from "./store.ts";

/**
 * Synchronises a store with a directory: objects are files named by their paths, so that a lab node keeps them over a
 * power cut, and a test that acts as a user or a controller just writes a file. Returns a function that loads changes.
 */
export function keepInFiles(store: Store, dir: string): () => void {
  const seen = new Map<string, string>();
  const newFile = `${dir}.new`;
  const fileOf = (path: string): string => join(dir, `${path}.json`);
  const markOf = (file: string): string => {
    const { mtimeMs, size, ino } = statSync(file);
    return `${mtimeMs} ${size} ${ino}`;
  };

  function takeIn(): void {
    const files = globSync("**/*.json", { cwd: dir });
    for (const file of files) {
      const path = `/${file.replace(/\.json$/, "")}`;
      const full = join(dir, file);
      const mark = markOf(full);
      const object = seen.get(path) === mark ? undefined : objectIn(full);
      if (object === undefined) continue;
      seen.set(path, mark);
      store.put(path, object);
    }
    const there = new Set(files.map((file) => `/${file.replace(/\.json$/, "")}`));
    for (const path of [...seen.keys()].filter((one) => !there.has(one))) {
      seen.delete(path);
      store.remove(path);
    }
  }

  takeIn();
  let isOwnChange = false;
  store.onChange(({ path, after }) => {
    if (isOwnChange) return;
    if (after === undefined) {
      rmSync(fileOf(path), { force: true });
      seen.delete(path);
      return;
    }
    mkdirSync(dirname(fileOf(path)), { recursive: true });
    // Renamed into place: a test that reads the file never sees half of it.
    writeFileSync(newFile, JSON.stringify(after));
    renameSync(newFile, fileOf(path));
    seen.set(path, markOf(fileOf(path)));
  });
  return () => {
    isOwnChange = true;
    try {
      takeIn();
    } finally {
      isOwnChange = false;
    }
  };
}

/** Undefined while it is being written: the next read has it complete. */
function objectIn(file: string): ApiObject | undefined {
  try {
    const object: unknown = JSON.parse(readFileSync(file, "utf8"));
    return isApiObject(object) ? object : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
