import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { errorLabel } from "./system-error.ts";

export type Tail =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "absent" }
  | { readonly kind: "unreadable"; readonly reason: string };

/** The last bytes of a file, from the first complete line on: the cost does not depend on the file size. */
export function readTail(path: string, maxBytes: number): Tail {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const code = errorLabel(error);
    return code === "ENOENT" ? { kind: "absent" } : { kind: "unreadable", reason: `cannot be opened (${code})` };
  }
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) return { kind: "unreadable", reason: "is not a regular file" };
    const length = Math.min(stats.size, maxBytes);
    const bytes = Buffer.alloc(length);
    const got = readSync(fd, bytes, 0, length, stats.size - length);
    const text = bytes.toString("utf8", 0, got);
    const isCut = length < stats.size;
    return { kind: "text", text: isCut ? text.slice(text.indexOf("\n") + 1) : text };
  } catch (error) {
    return { kind: "unreadable", reason: `cannot be read (${errorLabel(error)})` };
  } finally {
    closeSync(fd);
  }
}
