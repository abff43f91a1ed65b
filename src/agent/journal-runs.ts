import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { stateDirLayout } from "../heal/state/state-layout.ts";
import { errorCode } from "../host/source.ts";
import { runsIn } from "./heal-runs.ts";
import type { Store } from "./store.ts";

/** The end of the journal contains the runs that a page shows. */
const TAIL_BYTES = 256 * 1024;
/** The version of a missing journal: unghost has changed nothing yet. */
const NO_JOURNAL = "none";

/**
 * Publishes the last runs on this node, including those of the command line and the boot hook, whenever the journal
 * changed.
 */
export function publishRuns(store: Store, stateDir: string, onProblem: (error: unknown) => void): () => void {
  const { journal } = stateDirLayout(stateDir);
  let published: string | undefined;
  let reading: Promise<void> | undefined;

  async function refresh(): Promise<void> {
    const read = await readTail(journal, published);
    if (read === undefined) return;
    const runs = await runsIn(read.lines);
    published = read.version;
    store.update((state) => ({ ...state, runs }));
  }

  return store.onEvent(({ kind }) => {
    if (kind !== "scanned" && kind !== "healed" && kind !== "heal-failed") return;
    reading ??= refresh()
      .catch(onProblem)
      .finally(() => {
        reading = undefined;
      });
  });
}

/** Returns undefined if it is unchanged. */
async function readTail(path: string, known: string | undefined) {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const { dev, ino, size } = await file.stat();
      const version = `${dev}:${ino}:${size}`;
      if (version === known) return undefined;
      const start = Math.max(0, size - TAIL_BYTES);
      const bytes = Buffer.alloc(size - start);
      await file.read(bytes, 0, bytes.length, start);
      const lines = bytes.toString("utf8").split("\n");
      return { version, lines: start === 0 ? lines : lines.slice(1) };
    } finally {
      await file.close();
    }
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return known === NO_JOURNAL ? undefined : { version: NO_JOURNAL, lines: [] };
    throw thrown;
  }
}
