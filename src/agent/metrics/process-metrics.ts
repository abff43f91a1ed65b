import type { StateMetric } from "./state-metrics.ts";

/** What the agent itself costs, under the names every dashboard knows. Only what is cheap to read. */
export const PROCESS_METRICS: readonly StateMetric[] = [
  {
    type: "gauge",
    name: "process_resident_memory_bytes",
    help: "Resident memory of the agent.",
    labels: [],
    samples: () => [{ labels: {}, value: process.memoryUsage.rss() }],
  },
  {
    type: "counter",
    name: "process_cpu_seconds_total",
    help: "User and system CPU time of the agent.",
    labels: [],
    samples: () => {
      const { user, system } = process.cpuUsage();
      return [{ labels: {}, value: (user + system) / 1e6 }];
    },
  },
  {
    type: "gauge",
    name: "process_start_time_seconds",
    help: "Unix time at which the agent was started.",
    labels: [],
    samples: ({ startedAt }) => [{ labels: {}, value: startedAt.getTime() / 1000 }],
  },
];
