import { closeSync, openSync, readSync } from "node:fs";
import { sha256 } from "../../heal/quarantine/file-identity.ts";
import { resolveOnHost } from "../../host/paths.ts";
import { errorCode } from "../../host/source.ts";

const CHUNK = 1024 * 1024;

/** Checksum of the executable on the host; undefined if it does not exist. */
export function executableOnHost(hostRoot: string, path: string): string | undefined {
  try {
    return checksumOfFile(resolveOnHost(hostRoot, path, "follow"));
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT" || errorCode(thrown) === "ENOTDIR") return undefined;
    throw thrown;
  }
}

export function checksumOfFile(path: string): string {
  const hash = sha256();
  const buffer = Buffer.allocUnsafe(CHUNK);
  const fd = openSync(path, "r");
  try {
    for (let count = readSync(fd, buffer); count > 0; count = readSync(fd, buffer)) {
      hash.update(buffer.subarray(0, count));
    }
  } finally {
    closeSync(fd);
  }
  return hash.digest("hex");
}
