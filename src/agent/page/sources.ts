import { keptOnPurpose } from "../../report/pending.ts";
import { count } from "../../report/words.ts";
import type { WireCounts, WireReport } from "./wire.ts";
import { listed } from "./words.ts";

interface SourceRow {
  readonly name: string;
  readonly health: "read" | "partly" | "not used" | "failed";
  readonly detail: string;
  readonly next?: string;
}

/** What the verdict rests on, and how well each of it could be read. */
export function sourcesOf(report: WireReport): readonly SourceRow[] {
  return [
    runtimeRow(report.runtime),
    kubernetesRow(report.kubernetes),
    ...(report.kernel === undefined ? [] : [kernelRow(report.kernel)]),
    ...report.problems.map(({ source, problem, next }) => ({
      name: source,
      health: "failed" as const,
      detail: problem,
      next,
    })),
  ];
}

function runtimeRow({ name, version, endpoint, reachable }: WireReport["runtime"]): SourceRow {
  if (reachable) return { name: "runtime", health: "read", detail: `${name} ${version} at ${endpoint}` };
  return { name: "runtime", health: "failed", detail: `not reached${endpoint === "" ? "" : ` at ${endpoint}`}` };
}

function kubernetesRow({ source, error }: WireReport["kubernetes"]): SourceRow {
  const why = error === undefined ? "" : `: ${error}`;
  switch (source) {
    case "api":
      return { name: "kubernetes", health: error === undefined ? "read" : "partly", detail: `the API server${why}` };
    case "kubelet":
      return {
        name: "kubernetes",
        health: "partly",
        detail: `kubelet's pod directories instead of the API server${why}`,
      };
    case "none": {
      const detail = `pods not checked against Kubernetes${why}`;
      return { name: "kubernetes", health: error === undefined ? "not used" : "failed", detail };
    }
  }
}

function kernelRow({ stalls, hungTasks, netdeviceWaits, sinceBoot }: NonNullable<WireReport["kernel"]>): SourceRow {
  const seen = [
    ...(stalls > 0 ? [count(stalls, "stall")] : []),
    ...(hungTasks > 0 ? [count(hungTasks, "hung task")] : []),
    ...(netdeviceWaits > 0 ? [count(netdeviceWaits, "wait for a network device", "waits for a network device")] : []),
  ];
  const range = sinceBoot ? "since boot" : "in the part of the log that is left";
  return { name: "kernel log", health: "read", detail: `${seen.join(", ") || "nothing wrong"} ${range}` };
}

/** Numbers about the node that no finding carries. */
export function nodeFacts(report: WireReport, { leases, leftoverContainers }: WireCounts) {
  const facts = [
    { name: "Sandboxes", value: report.runtime.reachable ? String(report.sandboxes.total) : "–" },
    {
      name: "Not ready, kept on purpose",
      value: report.runtime.reachable ? String(keptOnPurpose(report).length) : "–",
    },
  ];
  const loops = report.crashLoops;
  if (loops !== undefined && loops.pods > 0) {
    const restarts = `${count(loops.restartsSinceBoot, "restart")} since boot`;
    facts.push({ name: "Crash loops", value: `${count(loops.pods, "pod")}, ${restarts}` });
  }
  if (leftoverContainers > 0) facts.push({ name: "Leftover containers", value: String(leftoverContainers) });
  for (const [network, members] of Map.groupBy(leases, (lease) => lease.network)) {
    const value = listed(members.map((lease) => [lease.count, lease.state] as const));
    if (value !== "") facts.push({ name: `Addresses of ${network}`, value });
  }
  return facts;
}
