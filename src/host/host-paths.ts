import { lstatSync, readlinkSync } from "node:fs";
import { posix } from "node:path";

/** Maps an absolute path of the node to a path below `root`, whatever slashes and dots it contains. */
export function hostPath(root: string, path: string): string {
  // Normalising an absolute path removes every "..".
  const inside = posix.normalize(`/${path}`);
  const joined = posix.normalize(`/${root}/${inside}`);
  return joined.length > 1 && joined.endsWith("/") ? joined.slice(0, -1) : joined;
}

/** The kernel's limit of links in one path. */
const MAX_LINKS = 40;

/**
 * Like hostPath, with symlinks resolved as on the node. A container with the node mounted at /host would otherwise
 * follow `/host/var/run -> /run` into its own /run.
 *
 * `last` is whether a symlink at the end is followed or left for the caller to refuse.
 */
export function resolveOnHost(root: string, path: string, last: "follow" | "keep"): string {
  if (last === "keep" && hostPath("/", root) === "/") return hostPath("/", path);

  const todo = hostPath("/", path).split("/").filter(Boolean).reverse();
  let done = "/";
  for (let links = 0; todo.length > 0; ) {
    const name = todo.pop() ?? "";
    const next = posix.join(done, name);
    const target = todo.length === 0 && last === "keep" ? undefined : linkTarget(hostPath(root, next));
    if (target === undefined || links === MAX_LINKS) {
      done = next;
      continue;
    }
    links += 1;
    if (target.startsWith("/")) done = "/";
    todo.push(...target.split("/").filter(Boolean).reverse());
  }
  return hostPath(root, done);
}

function linkTarget(path: string): string | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    // lstat failed (permission, not a directory): opening the path fails with the same error, which is reported there.
    return undefined;
  }
}
