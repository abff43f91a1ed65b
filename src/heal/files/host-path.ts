import { posix } from "node:path";
import { hostPath, resolveOnHost } from "../../host/host-paths.ts";

/**
 * The same file by a name without administrators' links above its directory (/var/lib/rancher -> /mnt/rancher), as the
 * node resolves them. The directory itself and the file are left as they are: a link there is refused later on.
 */
export function canonicalPath(hostRoot: string, path: string): string {
  const directory = posix.dirname(path);
  const above = resolveOnHost(hostRoot, posix.dirname(directory), "follow");
  const inside = posix.relative(hostPath("/", hostRoot), above);
  return posix.join("/", inside, posix.basename(directory), posix.basename(path));
}
