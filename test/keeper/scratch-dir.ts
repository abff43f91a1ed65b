import { onTestFinished } from "vitest";
import { tempDir } from "../support/temp-dir.ts";

/** A folder that goes after the test. */
export function scratchDir(): string {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  return dir.path;
}
