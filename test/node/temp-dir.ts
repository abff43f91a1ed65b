import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { writeWithParents } from "../support/temp-dir.ts";

/** A directory that other users may enter, removed after the test. */
export function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), "unghost-test-"));
  chmodSync(dir, 0o755);
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Writes files, creating their directories, and returns the directory. */
export function fill(dir: string, files: Readonly<Record<string, string>>): string {
  for (const [name, content] of Object.entries(files)) writeWithParents(join(dir, name), content);
  return dir;
}

export function makePipe(path: string): void {
  execFileSync("mkfifo", [path]);
}

export function makeSparse(path: string, bytes: number): void {
  writeFileSync(path, "");
  truncateSync(path, bytes);
}

/** A name that is not UTF-8. */
export function writeRawName(dir: string, name: readonly number[]): void {
  writeFileSync(Buffer.concat([Buffer.from(`${dir}/`), Buffer.from(name)]), "x");
}

export const isRoot = process.getuid?.() === 0;

/** Root may read everything, so this runs as another user. */
export async function asUnprivileged<T>(work: () => T | Promise<T>): Promise<T> {
  process.seteuid?.(65534);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
  }
}

export const ID = "0123456789abcdef".repeat(4);
export const OTHER_ID = "fedcba9876543210".repeat(4);
