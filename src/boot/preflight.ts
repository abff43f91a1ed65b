import { classes } from "../classes/index.ts";
import type { ObserveNodeOptions } from "../diagnose/observe-node.ts";
import { isBroken } from "../evidence/corrupt-files.ts";
import { openHealSession, type SessionOptions } from "../heal/execution/session.ts";
import { identifyFile } from "../heal/files/file-identity.ts";
import { quarantineFile } from "../heal/quarantine/quarantine.ts";
import { readCni } from "../snapshot/cni-facts.ts";
import type { ScratchFile } from "../snapshot/types/cni.ts";

type CachePlaces = Pick<ObserveNodeOptions, "hostRoot" | "cniCacheDir" | "multusDir">;

/** Cache files from before this boot that would make every removal fail. */
export async function brokenCaches(
  { hostRoot, cniCacheDir, multusDir }: CachePlaces,
  bootStartedAt: Date,
  deadline: AbortSignal,
): Promise<readonly (ScratchFile & { readonly class: string })[]> {
  const cni = await readCni({
    root: hostRoot,
    cacheDir: cniCacheDir,
    multusDir,
    network: Promise.resolve({ cniDirs: { conf: "/etc/cni/net.d", bin: [] }, isContainerd: true }),
    signal: deadline,
  });
  return classes.flatMap(({ id, cacheFiles }) =>
    (cacheFiles?.(cni) ?? [])
      // A file of this boot may be in use by a plugin.
      .filter((file) => isBroken(file) && file.modifiedAt < bootStartedAt)
      .map((file) => ({ ...file, class: id })),
  );
}

/**
 * What can be done without any runtime, once it is proven that no process of the last boot is alive: the broken cache
 * files are quarantined before the runtime starts. Returns their number.
 */
export async function clearBrokenCaches(
  options: CachePlaces,
  sessionOptions: SessionOptions,
  bootStartedAt: Date,
  deadline: AbortSignal,
): Promise<number> {
  const { hostRoot } = options;
  const broken = await brokenCaches(options, bootStartedAt, deadline);
  if (broken.length === 0) return 0;
  const session = await openHealSession(sessionOptions);
  if (!session.ok) return 0;
  try {
    let moved = 0;
    for (const { path, sandboxId, class: classId } of broken) {
      const expected = await identifyFile(hostRoot, path);
      if (!expected.ok) continue;
      const outcome = await quarantineFile(session.value, {
        path,
        expected: expected.value,
        finding: `${classId}/${sandboxId}`,
        class: classId,
        subject: { type: "file", path, sandboxId },
      });
      if (outcome.outcome === "healed") moved += 1;
    }
    return moved;
  } finally {
    await session.value.close();
  }
}
