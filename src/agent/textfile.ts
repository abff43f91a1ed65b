import { open, rename } from "node:fs/promises";
import { unlinkIfThere } from "../heal/state/durable-files.ts";
import { describeError } from "../host/source.ts";
import { agentMetrics } from "./metrics/agent-metrics.ts";
import { type KeptFile, keepFile } from "./state/kept-file.ts";
import type { Watched } from "./state/store.ts";

export interface TextfileOptions {
  readonly store: Watched;
  /** In the directory of node_exporter's textfile collector. */
  readonly path: string;
  /** Called for a failure when it starts or changes. */
  readonly warn: (message: string, detail: string) => void;
  /** The minimum interval between two writes; 15 s by default, about the usual scrape interval. */
  readonly everyMs?: number;
}

const EVERY_MS = 15_000;

/** The agent's metrics as a file for node_exporter: written after changes, and replaced atomically. */
export function textfileWriter(options: TextfileOptions): Pick<KeptFile, "close"> {
  const { store, path, warn, everyMs = EVERY_MS } = options;
  if (!path.endsWith(".prom")) {
    throw new Error(`node_exporter reads files that end in .prom only, and ${path} does not. Name it unghost.prom.`);
  }
  const metrics = agentMetrics(store, { process: false });
  const file = keepFile({
    everyMs,
    write: async () => {
      try {
        await replaceFile(path, await metrics.render());
        return undefined;
      } catch (error) {
        return `${path}: ${describeError(error)}`;
      }
    },
    onProblem: (problem) => warn("writing the metrics file failed; retrying", problem),
  });
  const unsubscribe = store.onChange(file.changed);
  file.changed();
  return {
    close: async () => {
      unsubscribe();
      metrics.close();
      await file.close();
    },
  };
}

/** node_exporter may read at any time, and skips names that do not end in .prom, like the temporary file's. */
async function replaceFile(path: string, content: string): Promise<void> {
  const draft = `${path}.draft`;
  await unlinkIfThere(draft);
  // "wx" does not follow a link that was created at the path meanwhile.
  const handle = await open(draft, "wx", 0o644);
  try {
    // Independent of the umask, because node_exporter runs as another user.
    await handle.chmod(0o644);
    await handle.writeFile(content);
  } finally {
    await handle.close();
  }
  await rename(draft, path);
}
