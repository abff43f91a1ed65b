import type { ContainerdClient } from "../runtime/containerd.ts";
import { readContainerd } from "../snapshot/containerd-facts.ts";
import { readProcessTable } from "../snapshot/process-table.ts";
import { readProcesses } from "../snapshot/processes.ts";
import type { Source } from "../snapshot/source.ts";
import type { ContainerdFacts, ProcessFacts } from "../snapshot/types.ts";

/** Facts about the whole node that are never older than a moment: many proofs at once share one reading. */
export interface FreshFacts {
  processes(): Promise<Source<ProcessFacts>>;
  /** undefined where the runtime is not containerd. */
  containerd(): Promise<ContainerdFacts | undefined>;
}

/** A dead sandbox does not come back to life: what was true a moment ago still is. */
const FRESH_MS = 500;

export function freshFacts(root: string, containerd: ContainerdClient | undefined, lookMs: number): FreshFacts {
  return {
    processes: shared(async () => {
      const signal = AbortSignal.timeout(lookMs);
      const table = await readProcessTable({ root, signal });
      return await readProcesses({ root, table, signal });
    }),
    containerd: shared(async () =>
      containerd === undefined ? undefined : await readContainerd(containerd, { timeoutMs: lookMs }),
    ),
  };
}

/** One reading for all who ask while it is under way or fresh. Counted from its start: that is what it has seen. */
function shared<T>(readAnew: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined;
  let startedAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (reading === undefined || performance.now() - startedAt > FRESH_MS) {
      startedAt = performance.now();
      reading = readAnew();
    }
    return reading;
  };
}
