import { open, rename } from "node:fs/promises";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { unlinkIfThere } from "../../heal/state/durable-files.ts";
import { describeError } from "../../host/source.ts";
import { keepFile } from "../state/kept-file.ts";
import type { AgentEvent } from "../state/state.ts";
import type { Watched } from "../state/store.ts";
import { counter, gauge, STATE_METRICS, type StateMetric, single } from "./state-metrics.ts";

export type AgentMetrics = ReturnType<typeof agentMetrics>;

interface AgentMetricsOptions {
  /** The agent's own memory and CPU. Not for node_exporter, which has metrics of the same names. */
  readonly process: boolean;
}

const SCAN_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const SYNC_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const HEAL_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** Ages and the process's own metrics change without a change of the state. */
const RENDERED_MS = 1000;

/** The agent's state in Prometheus' words, in its own registry. */
export function agentMetrics(store: Watched, options: AgentMetricsOptions) {
  const registry = new Registry();
  const metrics = options.process ? [...STATE_METRICS, ...PROCESS_METRICS] : STATE_METRICS;
  for (const metric of metrics) register(registry, metric, () => metric.samples(store.state(), performance.now()));
  const scans = histogram(registry, "unghost_scan_duration_seconds", "How long scans take.", SCAN_BUCKETS);
  const healing = "How long healing actions take, whatever their result.";
  const heals = histogram(registry, "unghost_heal_duration_seconds", healing, HEAL_BUCKETS);
  const syncing = "From the notice that a CNI plugin changed a file until the file is on disk.";
  const syncs = histogram(registry, "unghost_cni_sync_seconds", syncing, SYNC_BUCKETS);

  function observe(event: AgentEvent): void {
    if (event.kind === "scanned") scans.observe(event.seconds);
    if (event.kind === "cni-files-synced") for (const seconds of event.seconds) syncs.observe(seconds);
    if (event.kind === "healed" || event.kind === "heal-failed") heals.observe(event.record.seconds);
  }

  let rendered: { readonly atMs: number; readonly text: Promise<string> } | undefined;
  const forget = (): void => {
    rendered = undefined;
  };

  function render(): Promise<string> {
    const nowMs = performance.now();
    if (rendered === undefined || nowMs - rendered.atMs > RENDERED_MS) {
      rendered = { atMs: nowMs, text: registry.metrics() };
    }
    return rendered.text;
  }

  const unsubscribe = [store.onEvent(observe), store.onEvent(forget), store.onChange(forget)];
  return {
    contentType: registry.contentType,
    /** Rendered once a change, however often it is asked for. */
    render,
    close: (): void => {
      for (const stop of unsubscribe) stop();
    },
  };
}

/** Read again at each scrape, including counters: the state has the totals, so nothing is counted twice or missed. */
function register(registry: Registry, metric: StateMetric, samples: () => ReturnType<StateMetric["samples"]>): void {
  const { type, name, help, labels } = metric;
  const registered: Gauge | Counter = new (type === "gauge" ? Gauge : Counter)({
    name,
    help,
    labelNames: [...labels],
    registers: [registry],
    collect: () => {
      registered.reset();
      for (const sample of samples()) registered.inc(sample.labels, sample.value);
    },
  });
}

function histogram(registry: Registry, name: string, help: string, buckets: number[]): Histogram {
  return new Histogram({ name, help, buckets, registers: [registry] });
}

/** The agent's own resource usage, with the standard names. Only what is cheap to read. */
const PROCESS_METRICS: readonly StateMetric[] = [
  gauge(
    "process_resident_memory_bytes",
    "Resident memory of the agent.",
    single(() => process.memoryUsage.rss()),
  ),
  counter(
    "process_cpu_seconds_total",
    "User and system CPU time of the agent.",
    single(() => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    }),
  ),
  gauge(
    "process_start_time_seconds",
    "Unix time at which the agent was started.",
    single(({ startedAt }) => startedAt.getTime() / 1000),
  ),
];

export interface TextfileOptions {
  readonly store: Watched;
  /** In the directory of node_exporter's textfile collector. */
  readonly path: string;
  readonly warn: (message: string, detail: string) => void;
  /** The minimum interval between two writes; 15 s by default, about the usual scrape interval. */
  readonly everyMs?: number;
}

const EVERY_MS = 15_000;

/** The agent's metrics as a file for node_exporter: written after changes, and replaced atomically. */
export function textfileWriter({ store, path, warn, everyMs = EVERY_MS }: TextfileOptions) {
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
    close: async (): Promise<void> => {
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
