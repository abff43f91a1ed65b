import { closeSync, constants, openSync } from "node:fs";
import { isAbsolute, join, normalize } from "node:path";
import { describeError, errorCode } from "../../host/source.ts";
import { type Outcome, ok, refuse } from "../outcome.ts";
import { syncDescriptor } from "./durable-files.ts";

/**
 * An open directory, so that all operations on its entries affect this directory even if a part of its path is swapped
 * meanwhile.
 */
export interface HeldDirectory {
  /** A path to the entry that does not use the directory's own path. */
  entry(name: string): string;
  sync(): Promise<void>;
  close(): void;
}

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * Walks from the host's root to a directory, one component at a time, following no symbolic link. Returns undefined if
 * it does not exist. Node has no openat; /proc/self/fd/<n>/<name> does the same.
 */
export function holdDirectory(hostRoot: string, path: string): Outcome<HeldDirectory | undefined> {
  if (!isAbsolute(path) || normalize(path) !== path) {
    return refuse(
      `${path} is not a plain absolute path.`,
      "Give the directory without . or .. and without double slashes.",
    );
  }
  let fd = openSync(hostRoot, constants.O_RDONLY | constants.O_DIRECTORY);
  let walked = hostRoot;
  for (const component of path.split("/").filter((part) => part !== "")) {
    walked = join(walked, component);
    const step = openStep(fd, component, walked);
    closeSync(fd);
    if (!step.ok) return step;
    if (step.value === undefined) return ok(undefined);
    fd = step.value;
  }
  return ok(held(fd));
}

function openStep(from: number, component: string, walked: string): Outcome<number | undefined> {
  try {
    return ok(openSync(`/proc/self/fd/${from}/${component}`, DIRECTORY));
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === "ENOENT") return ok(undefined);
    if (code === "ENOTDIR" || code === "ELOOP") {
      return refuse(
        `${walked} is a symbolic link or not a directory, and unghost changes nothing through such a path.`,
        "Give the real directory (see realpath) with the flag that names it.",
      );
    }
    return refuse(`${walked} cannot be opened: ${describeError(thrown)}.`, "Check that directory's permissions.");
  }
}

function held(fd: number): HeldDirectory {
  return {
    entry: (name) => `/proc/self/fd/${fd}/${name}`,
    sync: () => syncDescriptor(fd),
    close: () => closeSync(fd),
  };
}
