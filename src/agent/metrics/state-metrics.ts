import { classes } from "../../classes/index.ts";
import { VERDICTS } from "../../evidence/finding.ts";
import { PENDING_REASONS } from "../../evidence/pending.ts";
import { NODE_STATES, nodeState } from "../../report/node-state.ts";
import { countBlocked } from "../../report/pending.ts";
import {
  type AgentState,
  CACHE_KINDS,
  CACHE_STATES,
  type LeaseCount,
  REFUSAL_REASONS,
  type Sighting,
} from "../state/state.ts";

/** One metric that is computed from the state at each scrape. */
export interface StateMetric {
  readonly type: "gauge" | "counter";
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  /** Every series, at 0 without data: a series that appears with its first count hides that count from rate(). */
  samples(state: AgentState, nowMs: number): readonly Sample[];
}

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const HEAL_RESULTS = ["healed", "failed", "skipped", "refused"] as const;

type Series = Pick<StateMetric, "labels" | "samples">;

export function gauge(name: string, help: string, series: Series): StateMetric {
  return { type: "gauge", name, help, ...series };
}

export function counter(name: string, help: string, series: Series): StateMetric {
  return { type: "counter", name, help, ...series };
}

/** One series, without labels. */
export function single(valueOf: (state: AgentState) => number): Series {
  return { labels: [], samples: (state) => [{ labels: {}, value: valueOf(state) }] };
}

/** One series for each value of a label. */
function each<Value extends string>(
  label: string,
  values: readonly Value[],
  valueOf: (value: Value, state: AgentState) => number,
): Series {
  return {
    labels: [label],
    samples: (state) => values.map((value) => ({ labels: { [label]: value }, value: valueOf(value, state) })),
  };
}

function perClass(valueOf: (sightings: readonly Sighting[], nowMs: number) => number): Series {
  return {
    labels: ["class"],
    samples: ({ sightings }, nowMs) => {
      const byClass = Map.groupBy(sightings, ({ finding }) => finding.class);
      return classes.map(({ id }) => ({ labels: { class: id }, value: valueOf(byClass.get(id) ?? [], nowMs) }));
    },
  };
}

export const STATE_METRICS: readonly StateMetric[] = [
  gauge(
    "unghost_verdict",
    "1 for the verdict of the last scan, 0 for the others; all 0 before the first scan.",
    each("verdict", VERDICTS, (verdict, { scan }) => (scan?.report.verdict === verdict ? 1 : 0)),
  ),
  gauge(
    "unghost_node_state",
    "1 for what unghost scan and the status page call this node, 0 for the others; all 0 before the first scan.",
    each("state", NODE_STATES, (state, { scan }) => (scan !== undefined && nodeState(scan.report) === state ? 1 : 0)),
  ),
  gauge(
    "unghost_sandboxes",
    "Pod sandboxes that the runtime lists.",
    each("state", ["ready", "not_ready"], (state, { scan }) => {
      const { ready = 0, notReady = 0 } = scan?.report.sandboxes ?? {};
      return state === "ready" ? ready : notReady;
    }),
  ),
  gauge(
    "unghost_findings",
    "Current findings, by failure class.",
    perClass((standing) => standing.length),
  ),
  gauge(
    "unghost_pending",
    "Sandbox creations and removals in flight, retried or failing, not yet findings, by reason.",
    each(
      "reason",
      PENDING_REASONS,
      (reason, { scan }) => (scan?.report.pending ?? []).filter((one) => one.reason === reason).length,
    ),
  ),
  gauge(
    "unghost_blocked_pods",
    "Pods that a finding or a failing attempt keeps from starting.",
    single(({ scan }) => (scan === undefined ? 0 : countBlocked(scan.report))),
  ),
  gauge(
    "unghost_pod_creation",
    "Whether this node can create pods: 1 for the answer of the last scan, 0 for the others.",
    each("able", ["yes", "no", "unknown"], (able, { scan }) =>
      scan !== undefined && (scan.report.podCreation?.able ?? "unknown") === able ? 1 : 0,
    ),
  ),
  gauge(
    "unghost_finding_age_seconds_max",
    "Age of the oldest finding of the class, by the monotonic clock.",
    perClass((standing, nowMs) => Math.max(0, ...standing.map((seen) => (nowMs - seen.firstSeenMs) / 1000))),
  ),
  gauge(
    "unghost_findings_observed",
    "Findings that the agent does not heal: policy is to observe, or the class is manual.",
    perClass((standing) => standing.filter((seen) => seen.standing.kind === "observed").length),
  ),
  gauge(
    "unghost_findings_given_up",
    "Findings whose healing budget is spent: manual steps required.",
    perClass((standing) => standing.filter((seen) => seen.standing.kind === "given-up").length),
  ),
  gauge(
    "unghost_findings_failed",
    "Findings that a heal failed to remove and that are tried again.",
    perClass((standing) => standing.filter((seen) => isTriedAgain(seen)).length),
  ),
  gauge(
    "unghost_next_try_timestamp_seconds",
    "Unix time of the next try to heal a finding after a failure; 0 without one.",
    single(({ sightings }) => {
      const times = sightings.flatMap(({ nextTryAt }) => (nextTryAt === undefined ? [] : [nextTryAt.getTime() / 1000]));
      return times.length === 0 ? 0 : Math.min(...times);
    }),
  ),
  counter("unghost_heals_total", "Healing actions since the agent's start, by failure class and result.", {
    labels: ["class", "result"],
    samples: ({ totals }) =>
      classes.flatMap(({ id }) =>
        HEAL_RESULTS.map((result) => ({
          labels: { class: id, result },
          value: totals.heals.get(`${id} ${result}`) ?? 0,
        })),
      ),
  }),
  counter(
    "unghost_refusals_total",
    "Decisions of the agent not to heal a finding, by reason.",
    each("reason", REFUSAL_REASONS, (reason, { totals }) => totals.refusals.get(reason) ?? 0),
  ),
  gauge(
    "unghost_last_scan_timestamp_seconds",
    "Unix time of the last finished scan; 0 before the first.",
    single(({ scan }) => (scan === undefined ? 0 : Date.parse(scan.report.observedAt) / 1000)),
  ),
  counter(
    "unghost_scans_failed_total",
    "Scans that failed.",
    single(({ totals }) => totals.scansFailed),
  ),
  gauge("unghost_cni_cache_files", "Files that CNI plugins keep per sandbox, by kind and what is wrong with them.", {
    labels: ["kind", "state"],
    samples: ({ scan }) =>
      CACHE_KINDS.flatMap((kind) =>
        CACHE_STATES.map((state) => ({
          labels: { kind, state },
          value: scan?.counts.cacheFiles.find((file) => file.kind === kind && file.state === state)?.count ?? 0,
        })),
      ),
  }),
  gauge(
    "unghost_cni_queue",
    "DELs that the CNI guard repeats, because their plugin failed.",
    single(({ scan }) => scan?.counts.cniQueue ?? 0),
  ),
  counter(
    "unghost_cni_files_synced_total",
    "Files of CNI plugins that the agent synced to disk since its start.",
    single(({ totals }) => totals.cniFilesSynced),
  ),
  gauge(
    "unghost_ip_leases",
    "Addresses of host-local networks: used, leaked (their container is gone), free where the range is known.",
    { labels: ["network", "state"], samples: ({ scan }) => leaseSamples(scan?.counts.leases ?? []) },
  ),
  gauge(
    "unghost_leftover_containers",
    "Containers in the runtime that belong to no pod Kubernetes knows.",
    single(({ scan }) => scan?.counts.leftoverContainers ?? 0),
  ),
  gauge(
    "unghost_volume_attachments_stuck",
    "VolumeAttachments of this node that are stuck attaching or detaching.",
    single(({ scan }) => scan?.counts.volumeAttachmentsStuck ?? 0),
  ),
  counter(
    "unghost_crash_restarts_total",
    "Restarts of crashing containers on the node since the agent's start.",
    single(({ totals }) => totals.crashRestarts),
  ),
  counter(
    "unghost_kernel_stalls_total",
    "Stalls and hung tasks in the kernel's log since the agent's start.",
    single(({ totals }) => totals.kernelStalls),
  ),
  gauge(
    "unghost_circuit_breaker_open",
    "1 while an implausible share of the fleet is unhealthy and healing is stopped.",
    single(({ breaker }) => (breaker.open ? 1 : 0)),
  ),
  gauge("unghost_build_info", "Always 1; the version is in the label.", {
    labels: ["version"],
    samples: ({ version }) => [{ labels: { version }, value: 1 }],
  }),
];

function isTriedAgain({ finding, standing }: Sighting): boolean {
  return standing.kind !== "given-up" && (finding.failedHeals?.times ?? 0) > 0;
}

/** Names come from the node's disk: a directory with too many entries must not cause a flood of series. */
export const MAX_NETWORKS = 32;
const THE_REST = "(other)";

/** `free` is exported only if it was counted: a 0 for "unknown" would mean "exhausted". The other two always exist. */
export function leaseSamples(leases: readonly LeaseCount[]): readonly Sample[] {
  const networks = [...new Set(leases.map(({ network }) => network))].toSorted();
  const shown = new Set(networks.length <= MAX_NETWORKS ? networks : networks.slice(0, MAX_NETWORKS - 1));
  const byNetwork = Map.groupBy(leases, ({ network }) => (shown.has(network) ? network : THE_REST));
  return [...byNetwork].flatMap(([network, counts]) => {
    const totals: Partial<Record<LeaseCount["state"], number>> = { used: 0, leaked: 0 };
    for (const { state, count } of counts) totals[state] = (totals[state] ?? 0) + count;
    return Object.entries(totals).map(([state, value]) => ({ labels: { network, state }, value }));
  });
}
