import { refuseHungMounts } from "../host/hung-mounts.ts";
import { readCniResults } from "./cni-files.ts";
import { readHostLocal } from "./host-local.ts";
import { readMetadataFile } from "./metadata.ts";
import { readBoot, readProcessTable } from "./process-table.ts";
import { readProcesses } from "./processes.ts";
import type { OfflineFacts } from "./types/snapshot.ts";

export interface OfflineOptions {
  readonly hostRoot: string;
  /** Default: the first distribution with a database. */
  readonly containerdRoot: string | undefined;
  readonly containerdVersion: string | undefined;
  readonly cniCacheDir: string;
  readonly timeoutMs: number;
}

/** Reads files and processes only: no socket is opened, nothing is written, nothing is locked. */
export async function observeOffline(options: OfflineOptions): Promise<OfflineFacts> {
  const { hostRoot: root, containerdRoot, containerdVersion, cniCacheDir } = options;
  const observedAt = new Date();
  const signal = AbortSignal.timeout(options.timeoutMs);
  await refuseHungMounts(root, [cniCacheDir, ...(containerdRoot === undefined ? [] : [containerdRoot])], signal);
  const table = await readProcessTable({ root, signal });
  const [processes, results, hostLocal] = await Promise.all([
    readProcesses({ root, table, signal }),
    readCniResults({ root, cacheDirs: [cniCacheDir], signal }),
    readHostLocal({ root, dir: `${cniCacheDir}/networks`, signal }),
  ]);
  return {
    observedAt,
    boot: readBoot({ root, now: observedAt }),
    metadata: readMetadataFile({ hostRoot: root, containerdRoot }),
    processes,
    cni: { results, hostLocal },
    containerdVersion,
  };
}
