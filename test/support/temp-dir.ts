import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export interface TempDir {
  readonly path: string;
  join(name: string): string;
  /** Writes a file in it and returns its path. */
  write(name: string, content: string | Uint8Array, mode?: number): string;
  remove(): void;
}

/** A directory for a test's sockets and files. */
export function tempDir(): TempDir {
  const path = mkdtempSync(join(tmpdir(), "unghost-test-"));
  return {
    path,
    join: (name) => join(path, name),
    write: (name, ...content) => writeWithParents(join(path, name), ...content),
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** Writes a file, with the directories above it, and returns its path. */
export function writeWithParents(path: string, content: string | Uint8Array, mode = 0o644): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content, { mode });
  return path;
}
