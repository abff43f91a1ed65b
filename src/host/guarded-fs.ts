import {
  existsSync as exists,
  lstatSync as lstat,
  openSync as open,
  opendirSync as opendir,
  readlinkSync as readlink,
  statSync as stat,
  statfsSync as statfs,
} from "node:fs";
import { posix as path } from "node:path";

/**
 * The functions of node:fs for paths of the node. They fail for a path on a mount that does not answer, instead of
 * waiting in the kernel, where neither a timer nor a signal reaches this process.
 */

let hung: ReadonlySet<string> = new Set();

/** From now on everything below these mount points fails. */
export function refuseBelow(points: readonly string[]): void {
  hung = new Set(points);
}

/** The first of these mount points on the way to a path, through every link. Asks nothing of a file system behind it. */
export function firstMountOn(file: string, points: ReadonlySet<string>): string | undefined {
  // What another process sees is on the same mounts, wherever its root directory is.
  const todo = segmentsOf(file.replace(/^.*\/proc\/\d+\/root(?=\/)/, ""));
  let done = "/";
  if (points.has(done)) return done;
  for (let links = 0; todo.length > 0; ) {
    const next = path.join(done, todo.pop() ?? "");
    if (points.has(next)) return next;
    const target = links < MAX_LINKS ? targetOf(next) : undefined;
    if (target === undefined) {
      done = next;
      continue;
    }
    links += 1;
    if (target.startsWith("/")) done = "/";
    todo.push(...segmentsOf(target));
  }
  return undefined;
}

/** The kernel's limit of links in one path. */
const MAX_LINKS = 40;

/** In reverse order, for pop(). */
function segmentsOf(file: string): string[] {
  return file.split("/").filter(Boolean).reverse();
}

function targetOf(file: string): string | undefined {
  try {
    return lstat(file, { throwIfNoEntry: false })?.isSymbolicLink() ? readlink(file) : undefined;
  } catch {
    // Permission denied, or no directory: whatever is done with the path fails as well.
    return undefined;
  }
}

function assertAnswers(file: unknown): void {
  if (hung.size === 0) return;
  const point = firstMountOn(String(file), hung);
  if (point === undefined) return;
  throw Object.assign(new Error(`the file system mounted at ${point} does not answer`), { code: "ETIMEDOUT" });
}

function guarded<Call extends (file: never, ...more: never[]) => unknown>(call: Call): Call {
  return ((file: never, ...more: never[]) => {
    assertAnswers(file);
    return call(file, ...more);
  }) as Call;
}

export const lstatSync = guarded(lstat);
export const statSync = guarded(stat);
export const statfsSync = guarded(statfs);
export const openSync = guarded(open);
export const opendirSync = guarded(opendir);
export const readlinkSync = guarded(readlink);

/** False as well for a path on a mount that does not answer: that mount is reported. */
export function existsSync(file: string): boolean {
  return (hung.size === 0 || firstMountOn(file, hung) === undefined) && exists(file);
}
