import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A directory for a test's sockets and files. */
export function tempDir(): { readonly path: string; join(name: string): string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "unghost-test-"));
  return { path, join: (name) => join(path, name), remove: () => rmSync(path, { recursive: true, force: true }) };
}
