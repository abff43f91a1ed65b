import { classes } from "../../classes/index.ts";
import { VERDICTS } from "../../evidence/finding.ts";
import { isFailing, PENDING_REASONS } from "../../evidence/pending.ts";
import type { NodeReport } from "../../report/node-report.ts";
import {
  type AgentState,
  type CacheFileCount,
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

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const HEAL_RESULTS = ["healed", "failed", "skipped", "refused"] as const;
const CACHE_KINDS = ["result", "multus", "flannel"] as const satisfies readonly CacheFileCount["kind"][];
const CACHE_STATES = [
  "ok",
  "empty",
  "corrupt",
  "odd",
  "orphaned",
] as const satisfies readonly CacheFileCount["state"][];

export const STATE_METRICS: readonly StateMetric[] = [
  {
    type: "gauge",
    name: "unghost_verdict",
    help: "1 for the verdict of the last scan, 0 for the others; all 0 before the first scan.",
    labels: ["verdict"],
    samples: ({ scan }) =>
      VERDICTS.map((verdict) => ({ labels: { verdict }, value: scan?.report.verdict === verdict ? 1 : 0 })),
  },
  {
    type: "gauge",
    name: "unghost_sandboxes",
    help: "Pod sandboxes that the runtime lists.",
    labels: ["state"],
    samples: ({ scan }) => [
      { labels: { state: "ready" }, value: scan?.report.sandboxes.ready ?? 0 },
      { labels: { state: "not_ready" }, value: scan?.report.sandboxes.notReady ?? 0 },
    ],
  },
  {
    type: "gauge",
    name: "unghost_findings",
    help: "Current findings, by failure class.",
    labels: ["class"],
    samples: ({ sightings }) => perClass(sightings, (standing) => standing.length),
  },
  {
    type: "gauge",
    name: "unghost_pending",
    help: "Sandbox creations and removals in flight, retried or failing, not yet findings, by reason.",
    labels: ["reason"],
    samples: ({ scan }) =>
      PENDING_REASONS.map((reason) => ({
        labels: { reason },
        value: (scan?.report.pending ?? []).filter((one) => one.reason === reason).length,
      })),
  },
  {
    type: "gauge",
    name: "unghost_blocked_pods",
    help: "Pods that a finding or a failing attempt keeps from starting or stopping.",
    labels: [],
    samples: ({ scan }) => [{ labels: {}, value: blockedPods(scan?.report) }],
  },
  {
    type: "gauge",
    name: "unghost_pod_creation",
    help: "Whether this node can create pods: 1 for the answer of the last scan, 0 for the others.",
    labels: ["able"],
    samples: ({ scan }) =>
      (["yes", "no", "unknown"] as const).map((able) => ({
        labels: { able },
        value: scan !== undefined && (scan.report.podCreation?.able ?? "unknown") === able ? 1 : 0,
      })),
  },
  {
    type: "gauge",
    name: "unghost_finding_age_seconds_max",
    help: "Age of the oldest finding of the class, by the monotonic clock.",
    labels: ["class"],
    samples: ({ sightings }, nowMs) =>
      perClass(sightings, (standing) => Math.max(0, ...standing.map((seen) => (nowMs - seen.firstSeenMs) / 1000))),
  },
  {
    type: "gauge",
    name: "unghost_findings_observed",
    help: "Findings that the agent does not heal: policy is to observe, or the class is manual.",
    labels: ["class"],
    samples: ({ sightings }) =>
      perClass(sightings, (standing) => standing.filter((seen) => seen.standing.kind === "observed").length),
  },
  {
    type: "gauge",
    name: "unghost_findings_given_up",
    help: "Findings whose healing budget is spent: manual steps required.",
    labels: ["class"],
    samples: ({ sightings }) =>
      perClass(sightings, (standing) => standing.filter((seen) => seen.standing.kind === "given-up").length),
  },
  {
    type: "counter",
    name: "unghost_heals_total",
    help: "Healing actions since the agent's start, by failure class and result.",
    labels: ["class", "result"],
    samples: ({ totals }) =>
      classes.flatMap(({ id }) =>
        HEAL_RESULTS.map((result) => ({
          labels: { class: id, result },
          value: totals.heals.get(`${id} ${result}`) ?? 0,
        })),
      ),
  },
  {
    type: "counter",
    name: "unghost_refusals_total",
    help: "Decisions of the agent not to heal a finding, by reason.",
    labels: ["reason"],
    samples: ({ totals }) =>
      REFUSAL_REASONS.map((reason) => ({ labels: { reason }, value: totals.refusals.get(reason) ?? 0 })),
  },
  {
    type: "gauge",
    name: "unghost_last_scan_timestamp_seconds",
    help: "Unix time of the last finished scan; 0 before the first.",
    labels: [],
    samples: ({ scan }) => single(scan === undefined ? 0 : Date.parse(scan.report.observedAt) / 1000),
  },
  {
    type: "counter",
    name: "unghost_scans_failed_total",
    help: "Scans that failed.",
    labels: [],
    samples: ({ totals }) => single(totals.scansFailed),
  },
  {
    type: "gauge",
    name: "unghost_cni_cache_files",
    help: "Files that CNI plugins keep per sandbox, by kind and what is wrong with them.",
    labels: ["kind", "state"],
    samples: ({ scan }) =>
      CACHE_KINDS.flatMap((kind) =>
        CACHE_STATES.map((state) => ({
          labels: { kind, state },
          value: sum(scan?.counts.cacheFiles.filter((file) => file.kind === kind && file.state === state) ?? []),
        })),
      ),
  },
  {
    type: "counter",
    name: "unghost_cni_files_synced_total",
    help: "Files of CNI plugins that the agent synced to disk since its start.",
    labels: [],
    samples: ({ totals }) => single(totals.cniFilesSynced),
  },
  {
    type: "gauge",
    name: "unghost_ip_leases",
    help: "Addresses of host-local networks: used, leaked (their container is gone), free where the range is known.",
    labels: ["network", "state"],
    samples: ({ scan }) => leaseSamples(scan?.counts.leases ?? []),
  },
  {
    type: "gauge",
    name: "unghost_leftover_containers",
    help: "Containers in the runtime that belong to no pod Kubernetes knows.",
    labels: [],
    samples: ({ scan }) => single(scan?.counts.leftoverContainers ?? 0),
  },
  {
    type: "gauge",
    name: "unghost_volume_attachments_stuck",
    help: "VolumeAttachments of this node that are stuck attaching or detaching.",
    labels: [],
    samples: ({ scan }) => single(scan?.counts.volumeAttachmentsStuck ?? 0),
  },
  {
    type: "counter",
    name: "unghost_crash_restarts_total",
    help: "Restarts of crashing containers on the node since the agent's start.",
    labels: [],
    samples: ({ totals }) => single(totals.crashRestarts),
  },
  {
    type: "counter",
    name: "unghost_kernel_stalls_total",
    help: "Stalls and hung tasks in the kernel's log since the agent's start.",
    labels: [],
    samples: ({ totals }) => single(totals.kernelStalls),
  },
  {
    type: "gauge",
    name: "unghost_circuit_breaker_open",
    help: "1 while an implausible share of the fleet is unhealthy and healing is stopped.",
    labels: [],
    samples: ({ breaker }) => single(breaker.open ? 1 : 0),
  },
  {
    type: "gauge",
    name: "unghost_build_info",
    help: "Always 1; the version is in the label.",
    labels: ["version"],
    samples: ({ version }) => [{ labels: { version }, value: 1 }],
  },
];

function single(value: number): readonly Sample[] {
  return [{ labels: {}, value }];
}

function perClass(
  sightings: readonly Sighting[],
  valueOf: (standing: readonly Sighting[]) => number,
): readonly Sample[] {
  const byClass = Map.groupBy(sightings, ({ finding }) => finding.class);
  return classes.map(({ id }) => ({ labels: { class: id }, value: valueOf(byClass.get(id) ?? []) }));
}

function sum(counts: readonly { readonly count: number }[]): number {
  return counts.reduce((total, { count }) => total + count, 0);
}

function blockedPods(report: NodeReport | undefined): number {
  const ofFindings = (report?.findings ?? []).flatMap((finding) => finding.blockedPods ?? []);
  const ofAttempts = (report?.pending ?? []).filter(isFailing).flatMap(({ pod }) => pod ?? []);
  return new Set([...ofFindings, ...ofAttempts].map(({ namespace, name }) => `${namespace}/${name}`)).size;
}

/** Names come from the node's disk: a directory with too many entries must not cause a flood of series. */
export const MAX_NETWORKS = 32;
const THE_REST = "(other)";

/** `free` is exported only if it was counted: a 0 for "unknown" would mean "exhausted". The other two always exist. */
export function leaseSamples(leases: readonly LeaseCount[]): readonly Sample[] {
  const networks = [...new Set(leases.map(({ network }) => network))].toSorted();
  const shown = new Set(networks.length <= MAX_NETWORKS ? networks : networks.slice(0, MAX_NETWORKS - 1));
  const byNetwork = Map.groupBy(leases, ({ network }) => (shown.has(network) ? network : THE_REST));
  return [...byNetwork].flatMap(([network, counts]) => samplesOf(network, counts));
}

function samplesOf(network: string, counts: readonly LeaseCount[]): readonly Sample[] {
  const totals = new Map<LeaseCount["state"], number>([
    ["used", 0],
    ["leaked", 0],
  ]);
  for (const { state, count } of counts) totals.set(state, (totals.get(state) ?? 0) + count);
  return [...totals].map(([state, value]) => ({ labels: { network, state }, value }));
}
