import * as v from "valibot";
import { isFailing } from "../../evidence/pending.ts";
import type { NodeReport, ReportedFinding } from "../../report/node-report.ts";
import type { Retries } from "../../report/node-state.ts";

export interface VerdictWords {
  /** The reason of the verdict: a sentence without its full stop. */
  readonly problem: string;
  /** What to do about it. */
  readonly next: string;
}

const MAX_PROBLEMS = 3;

/** The description of a verdict, for the log and for /readyz. */
export function verdictWords({ verdict, findings, problems, pending = [] }: NodeReport): VerdictWords {
  switch (verdict) {
    case "unknown":
      return {
        problem: `the last scan could not determine whether this node has ghosts: ${problemsInWords(problems)}`,
        next: problems.find(({ next }) => next !== undefined)?.next ?? "Run unghost doctor on this node.",
      };
    case "ghosts":
      return { problem: `the last scan found ${findingsInWords(findings)}`, next: "Run unghost scan on this node." };
    case "degraded":
      return {
        problem: `the last scan found no ghosts, but ${pending.filter(isFailing).length} failures are still reported`,
        next: "Run unghost scan on this node.",
      };
    case "healthy":
      return { problem: "none: the last scan found no ghosts", next: "Nothing." };
  }
}

function problemsInWords(problems: NodeReport["problems"]): string {
  const [first, ...rest] = [...new Set(problems.map(({ source, problem }) => `${source}: ${problem}`))];
  if (first === undefined) return "how a container ended could not be read";
  const shown = [first, ...rest.slice(0, MAX_PROBLEMS - 1)].join("; ");
  const left = rest.length - (MAX_PROBLEMS - 1);
  return left > 0 ? `${shown}; and ${left} more` : shown;
}

function findingsInWords(findings: NodeReport["findings"]): string {
  const byClass = [...Map.groupBy(findings, (finding) => finding.class)];
  return byClass.map(([id, { length }]) => `${length} × ${id}`).join(", ") || "ghosts that are being healed";
}

/**
 * The agent's state at one moment: metrics, page, condition, events and textfile are derived only from it. Immutable;
 * the store replaces it.
 */
export interface AgentState {
  readonly node: string;
  readonly version: string;
  readonly startedAt: Date;
  /** The last finished scan; missing until the first one. */
  readonly scan?: ScanState;
  /** Why the last scan failed; missing if it was finished. */
  readonly scanFailure?: string;
  /** Every current finding, with its age and what is done about it. */
  readonly sightings: readonly Sighting[];
  /** The last heal actions, newest first; limited. */
  readonly heals: readonly HealRecord[];
  /**
   * The last runs in the journal, newest first, including those of the command line and the boot hook. Missing until it
   * was read.
   */
  readonly runs?: readonly HealRun[];
  readonly totals: Totals;
  readonly breaker: BreakerState;
  /** One point a minute for the last 24 hours, oldest first. */
  readonly timeline: readonly TimelinePoint[];
  /** Why nothing is acted on right now, whatever is found; missing while the agent acts. */
  readonly pauseReason?: PauseReason;
  /** The last error of the configuration file: the previous one is still in effect. */
  readonly configProblem?: string;
  /** What comes before a command of unghost for readers of the page; missing on the host itself. */
  readonly commandPlace?: string;
  /** The address at which the network can read this without a token. */
  readonly openAddress?: string;
}

/** Whether all healing is stopped because the cause is probably not on the nodes. */
export interface BreakerState {
  readonly open: boolean;
  readonly message?: string;
  readonly since?: Date;
}

export interface ScanState {
  readonly report: NodeReport;
  readonly counts: NodeCounts;
  readonly seconds: number;
  /** performance.now() at its end: ages do not use the wall clock. */
  readonly endedAtMs: number;
}

/** Numbers that the report does not carry, taken from the snapshot before it is released. */
export interface NodeCounts {
  readonly cacheFiles: readonly CacheFileCount[];
  /** DELs in the queue of the CNI guard. */
  readonly cniQueue: number;
  readonly leases: readonly LeaseCount[];
  readonly leftoverContainers: number;
  readonly volumeAttachmentsStuck: number;
}

export const CACHE_KINDS = ["result", "multus", "flannel"] as const;
export const CACHE_STATES = ["ok", "empty", "corrupt", "odd", "orphaned"] as const;

export interface CacheFileCount {
  readonly kind: (typeof CACHE_KINDS)[number];
  readonly state: (typeof CACHE_STATES)[number];
  readonly count: number;
}

export interface LeaseCount {
  readonly network: string;
  /** `used`: the runtime has its container. `leaked`: it does not. `free`: left in the configured ranges. */
  readonly state: "used" | "leaked" | "free";
  readonly count: number;
}

export interface Sighting {
  readonly finding: ReportedFinding;
  readonly firstSeenAt: Date;
  /** performance.now() at the first sighting. */
  readonly firstSeenMs: number;
  readonly standing: Standing;
  /** Attempts within the budget's period. */
  readonly attempts: number;
  /** After a failure: when it is tried again, in whole seconds. */
  readonly nextTryAt?: Date | undefined;
}

/** How often a finding failed, when it is tried again, and whether it is given up. */
export function retriesOf({ finding: { failedHeals }, standing, nextTryAt }: Sighting): Retries {
  return {
    times: failedHeals?.times ?? 0,
    nextTryAt: nextTryAt?.toISOString().replace(".000Z", "Z"),
    givenUp: standing.kind === "given-up",
  };
}

/** What is done about a finding. */
export type Standing =
  /** The policy is to observe only, or the class is manual. */
  | { readonly kind: "observed"; readonly message: string }
  /** It will be healed; `message` contains when, or what it waits for. */
  | { readonly kind: "waiting"; readonly message: string }
  | { readonly kind: "healing" }
  /** Its budget is spent; `next` contains the manual steps. */
  | { readonly kind: "given-up"; readonly message: string; readonly next: string };

export interface HealRecord {
  readonly at: Date;
  readonly finding: string;
  readonly class: string;
  readonly summary: string;
  /** What was done, step by step. */
  readonly done?: string;
  readonly pod?: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly outcome: "healed" | "skipped" | "failed" | "refused";
  readonly reason?: string;
  readonly journalId?: string;
  /** Its journal entries that `unghost undo` can revert. */
  readonly undo?: readonly string[];
  readonly seconds: number;
}

/** One run of unghost in the node's journal: by the command line, the agent or the boot hook. */
export interface HealRun {
  readonly run: string;
  readonly at: string;
  readonly by?: "cli" | "agent" | "boot";
  readonly seconds?: number;
  readonly items: readonly HealItem[];
  /** Items beyond those shown. */
  readonly more: number;
}

/** What was done about one finding. */
export interface HealItem {
  readonly finding: string;
  readonly class: string;
  readonly subject: string;
  readonly outcome: "done" | "failed" | "refused" | "interrupted" | "undone";
  /** Past tense, in order. */
  readonly did: readonly string[];
  readonly reason?: string;
  /** Journal ids that `unghost undo` takes. */
  readonly undo: readonly string[];
}

/** Counters since the agent's start; they only grow. */
export interface Totals {
  /** Key: `<class> <result>`. */
  readonly heals: ReadonlyMap<string, number>;
  readonly refusals: ReadonlyMap<RefusalReason, number>;
  readonly crashRestarts: number;
  readonly kernelStalls: number;
  readonly scans: number;
  readonly scansFailed: number;
  /** Files of CNI plugins that were synced to disk; at most a second behind. */
  readonly cniFilesSynced: number;
}

export const REFUSAL_REASONS = [
  "paused",
  "opted-out",
  "policy",
  "maintenance-window",
  "budget",
  "cool-down",
  "min-age",
  "breaker",
  "slots",
  "maintenance",
  "guard",
  "lock",
  "disk",
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

export interface PauseReason {
  readonly reason: RefusalReason;
  readonly message: string;
}

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
export const TimelinePoint = v.object({
  /** Start of its minute, Unix seconds. */
  minute: count,
  /** The maximum; 0 and without meaning if it is unknown. */
  ghosts: count,
  /** No scan of this minute could determine the ghosts. */
  unknown: v.exactOptional(v.literal(true)),
  healed: count,
  failed: count,
  crashRestarts: count,
  kernelStalls: count,
});
export type TimelinePoint = Readonly<v.InferOutput<typeof TimelinePoint>>;

/** Events published beside the state, for histograms, Kubernetes events and logs. */
export type AgentEvent =
  | { readonly kind: "scanned"; readonly seconds: number }
  | { readonly kind: "scan-failed"; readonly reason: string }
  /** `from` is missing on the first scan. */
  | ({
      readonly kind: "verdict";
      readonly from?: NodeReport["verdict"];
      readonly to: NodeReport["verdict"];
    } & VerdictWords)
  | { readonly kind: "detected" | "gone" | "given-up"; readonly sighting: Sighting }
  /** Kubelet or Kubernetes reports failures that are not findings yet, since this scan. */
  | { readonly kind: "degraded"; readonly report: NodeReport }
  | { readonly kind: "healed" | "heal-failed"; readonly record: HealRecord; readonly sighting?: Sighting }
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly message: string; readonly sighting?: Sighting }
  | { readonly kind: "breaker"; readonly breaker: BreakerState }
  /** For each file: the time from the notice of its change until it was on disk. */
  | { readonly kind: "cni-files-synced"; readonly seconds: readonly number[] }
  | { readonly kind: "config"; readonly problem?: string };

/** The state before the first scan. */
export function initialState(node: string, version: string, timeline: readonly TimelinePoint[]): AgentState {
  return {
    node,
    version,
    startedAt: new Date(),
    sightings: [],
    heals: [],
    totals: {
      heals: new Map(),
      refusals: new Map(),
      crashRestarts: 0,
      kernelStalls: 0,
      scans: 0,
      scansFailed: 0,
      cniFilesSynced: 0,
    },
    breaker: { open: false },
    timeline,
  };
}
