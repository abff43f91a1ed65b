import { entriesIn, statsOf } from "../host/safe-fs.ts";

/** libcni's results, for the runtime and for multus, which keeps those of its delegates apart. */
const RESULT_DIRS = ["/var/lib/cni/results", "/var/lib/cni/multus/results"] as const;

/**
 * libcni writes the result of a network after its last plugin's ADD, and removes it after a DEL without an error. An
 * empty file counts, too: that is what a power cut leaves of a whole one.
 */
export function hasRuntimeResult(root: string, network: string | undefined, container: string, name: string): boolean {
  return RESULT_DIRS.some((dir) => {
    if (network !== undefined) return statsOf(`${root}${dir}/${network}-${container}-${name}`)?.isFile() === true;
    return entriesIn(`${root}${dir}`).some((entry) => entry.name.endsWith(`-${container}-${name}`));
  });
}
