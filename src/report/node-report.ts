import * as v from "valibot";
import { VERDICTS } from "../evidence/finding.ts";
import { PENDING_REASONS, REPORTED_CODES } from "../evidence/pending.ts";

/**
 * The report that users script against. This schema is the contract: the published JSON Schema is generated from it.
 * Additions are compatible, removals and renames are not.
 */
export const API_VERSION = "unghost.dev/v1";

const Pod = v.object({
  namespace: v.string(),
  name: v.string(),
  uid: v.string(),
  attempt: v.pipe(v.number(), v.integer(), v.minValue(0)),
});

const SubjectSchema = v.object({
  type: v.picklist([
    "sandbox",
    "file",
    "process",
    "netns",
    "lease",
    "volume-attachment",
    "record",
    "container",
    "node",
  ]),
  sandboxId: v.optional(v.string()),
  name: v.optional(v.string()),
  pod: v.optional(Pod),
  path: v.optional(v.string()),
  pid: v.optional(v.pipe(v.number(), v.integer())),
});

/** The best source that the node has. */
export const SINCE_SOURCES = [
  /** The start of the hung process. */
  "process",
  /** The runtime found it dead when it started. */
  "runtime-start",
  /** Its last container ended, or it was created, in this boot. */
  "last-sign",
  /** It died before this boot, at an unknown time: since the boot is a minimum. */
  "boot",
  /** The file, network namespace or lease was written. */
  "written",
] as const;

const NamedPodSchema = v.object({ namespace: v.string(), name: v.string(), uid: v.optional(v.string()) });

/** One step of a plan. */
const ChangeSchema = v.object({
  step: v.string(),
  /** What exactly it changes: a path, a process, an address. */
  target: v.optional(v.string()),
  /** `unghost undo` puts it back. */
  undo: v.boolean(),
  /** Done only for what the removal of the sandbox leaves behind. */
  ifLeft: v.boolean(),
});

const FindingSchema = v.object({
  id: v.string(),
  class: v.string(),
  severity: v.picklist(["critical", "warning", "info"]),
  subject: SubjectSchema,
  summary: v.string(),
  evidence: v.array(v.object({ source: v.string(), fact: v.string() })),
  blocks: v.array(v.string()),
  /** Every pod that does not start because of it; `blocks` lists the first ones. */
  blockedPods: v.optional(v.array(NamedPodSchema)),
  /** Every deleted pod whose deletion waits because of it. */
  terminatingPods: v.optional(v.array(NamedPodSchema)),
  treatment: v.object({ automatic: v.boolean(), reversible: v.boolean(), steps: v.array(v.string()) }),
  /** A ghost is about a dead sandbox, a leak has no owner. */
  kind: v.optional(v.picklist(["ghost", "leak", "other"])),
  /** Since when the state exists; missing if nothing on the node shows it. */
  since: v.optional(v.string()),
  /** The source of `since`; with `boot` it is a minimum. */
  sinceSource: v.optional(v.picklist(SINCE_SOURCES)),
  blockedAddresses: v.optional(v.number()),
  /** Runs that failed to heal it, by the journal of this node. */
  failedHeals: v.optional(
    v.object({
      times: v.number(),
      lastAt: v.string(),
      reason: v.optional(v.string()),
      /** When the agent of this node tries again. */
      nextTryAt: v.optional(v.string()),
      /** The agent's budget of tries is spent. */
      givenUp: v.optional(v.boolean()),
    }),
  ),
  /**
   * What `unghost heal` would run now, by the same planner, and why; without steps it skips the finding. With -v or
   * targets.
   */
  plan: v.optional(
    v.object({
      steps: v.array(v.string()),
      changes: v.optional(v.array(ChangeSchema)),
      reason: v.string(),
      code: v.string(),
    }),
  ),
});

const ActionSchema = v.object({
  finding: v.string(),
  action: v.string(),
  /** Of a dry run: the steps in order. */
  changes: v.optional(v.array(ChangeSchema)),
  outcome: v.picklist(["healed", "skipped", "failed", "refused"]),
  /** Pods that are deleted with it, so that their controllers create them again. */
  restarts: v.optional(v.array(v.object({ namespace: v.string(), name: v.string(), uid: v.string() }))),
  /** What happens afterwards without further steps, and how long it takes. */
  expect: v.optional(v.string()),
  reason: v.optional(v.string()),
  /** A stable code of the reason, if it has one. */
  code: v.optional(v.string()),
  journalId: v.optional(v.string()),
  /** The directory that the logs of removed containers were copied to. */
  logsSavedTo: v.optional(v.string()),
  /** Journal ids that unghost undo can revert. */
  undo: v.optional(v.array(v.string())),
  seconds: v.number(),
});

const PendingPodSchema = v.object({
  namespace: v.string(),
  name: v.string(),
  uid: v.optional(v.string()),
  attempt: v.optional(v.number()),
});

/** In flight, retried or failing, and not yet proven stuck. */
const PendingSchema = v.object({
  reason: v.picklist(PENDING_REASONS),
  pod: v.optional(PendingPodSchema),
  sandboxId: v.optional(v.string()),
  since: v.string(),
  waitsFor: v.optional(
    v.object({
      kind: v.picklist(["plugin", "daemon", "lock", "volume", "runtime"]),
      pid: v.optional(v.number()),
      command: v.optional(v.string()),
      cniCommand: v.optional(v.string()),
      socket: v.optional(v.string()),
      message: v.optional(v.string()),
    }),
  ),
  reported: v.array(
    v.object({
      by: v.picklist(["kubelet", "runtime", "kubernetes"]),
      code: v.picklist(REPORTED_CODES),
      operation: v.picklist(["create", "remove", "status"]),
      at: v.optional(v.string()),
      count: v.number(),
      message: v.string(),
    }),
  ),
  becomesFindingAt: v.optional(v.string()),
});

/** Can this node create a pod? */
const PodCreationSchema = v.object({
  able: v.picklist(["yes", "no", "unknown"]),
  lastSuccess: v.optional(v.object({ at: v.string(), pod: PendingPodSchema })),
  lastFailure: v.optional(
    v.object({
      at: v.optional(v.string()),
      code: v.picklist(REPORTED_CODES),
      pod: v.optional(PendingPodSchema),
      message: v.string(),
    }),
  ),
  /** Pods whose sandbox fails to be created, or whose creation is stalled or overdue. */
  blockedPods: v.array(PendingPodSchema),
});

export const NodeReportSchema = v.object({
  apiVersion: v.literal(API_VERSION),
  kind: v.literal("NodeReport"),
  node: v.string(),
  /** The selected targets or namespaces, if any. */
  selection: v.optional(v.object({ targets: v.array(v.string()), namespaces: v.array(v.string()) })),
  observedAt: v.pipe(v.string(), v.isoTimestamp()),
  verdict: v.picklist(VERDICTS),
  runtime: v.object({ name: v.string(), version: v.string(), endpoint: v.string(), reachable: v.boolean() }),
  kubernetes: v.object({ source: v.picklist(["api", "kubelet", "none"]), error: v.optional(v.string()) }),
  boot: v.object({ id: v.string(), startedAt: v.string() }),
  sandboxes: v.object({ total: v.number(), ready: v.number(), notReady: v.number() }),
  /** Problems in the kernel's log; missing on a healthy node, and if it is unreadable. */
  kernel: v.optional(
    v.object({ stalls: v.number(), hungTasks: v.number(), netdeviceWaits: v.number(), sinceBoot: v.boolean() }),
  ),
  /** Crash loops on the node, for any reason. */
  crashLoops: v.optional(v.object({ pods: v.number(), restartsSinceBoot: v.number() })),
  /** Missing if the runtime was not read. */
  podCreation: v.optional(PodCreationSchema),
  findings: v.array(FindingSchema),
  pending: v.optional(v.array(PendingSchema)),
  kept: v.array(v.object({ sandboxId: v.string(), pod: Pod, reason: v.string(), code: v.optional(v.string()) })),
  problems: v.array(
    v.object({
      source: v.string(),
      problem: v.string(),
      next: v.optional(v.string()),
      /** A stable code of the problem, if it has one. */
      code: v.optional(v.string()),
    }),
  ),
  advice: v.array(v.string()),
  /** What may be wrong and no source of this node shows; missing if there is nothing. */
  notKnown: v.optional(v.array(v.string())),
  actions: v.optional(v.array(ActionSchema)),
  /** Of a dry run: `heal --plan FILE` compares it with the plan that it makes. */
  planDigest: v.optional(v.string()),
  remaining: v.optional(v.array(v.string())),
});

type Frozen<T> = T extends readonly (infer One)[]
  ? readonly Frozen<One>[]
  : T extends object
    ? { readonly [Key in keyof T]: Frozen<T[Key]> }
    : T;

export type NodeReport = Frozen<v.InferOutput<typeof NodeReportSchema>>;
export type ReportedAction = NonNullable<NodeReport["actions"]>[number];
export type ReportedFinding = NodeReport["findings"][number];
export type ReportedPending = NonNullable<NodeReport["pending"]>[number];
