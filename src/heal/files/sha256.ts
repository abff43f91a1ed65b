import type { Hash } from "node:crypto";

/**
 * A hash of bytes to come. The module is taken when it is needed: a static import would be loaded at every start of the
 * one-file build, by commands that hash nothing, and costs 2 ms.
 */
export function sha256(): Hash {
  return process.getBuiltinModule("node:crypto").createHash("sha256");
}

export function sha256Of(content: string | Uint8Array): string {
  return sha256().update(content).digest("hex");
}
