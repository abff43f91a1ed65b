import { onTestFinished } from "vitest";
import { tempDir } from "../support/temp-dir.ts";

/** A directory that is removed after the test. */
export function scratchDir(): string {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  return dir.path;
}
