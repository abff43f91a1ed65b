import { classes } from "../classes/index.ts";
import { toFinding } from "../diagnose/from-logs.ts";
import { type ObserveNodeOptions, observeNode } from "../diagnose/observe-node.ts";
import { offlineDiagnosis, offlineSnapshot } from "../diagnose/offline.ts";
import type { Finding } from "../evidence/finding.ts";
import { brokenInWords, isBroken, stepToQuarantine } from "../evidence/sandbox-detected.ts";
import { type Healing, type RunOptions, run } from "../heal/pipeline.ts";
import { DEFAULT_WAITS } from "../heal/proof/fresh-facts.ts";
import { absentRuntime } from "../heal/proof/runtime-access.ts";
import { placesAt } from "../host/distributions.ts";
import { refuseHungMounts } from "../host/hung-mounts.ts";
import { absent, valueOr } from "../host/source.ts";
import { readCni } from "../node/cni-facts.ts";
import { readBoot } from "../node/process-table.ts";
import { ZERO_TIME } from "../node/types/runtime.ts";
import type { Snapshot } from "../node/types/snapshot.ts";
import type { Plan } from "../plan/plan.ts";
import { EARLIEST_PLAUSIBLE, type HealPolicy } from "../plan/policy.ts";
import { type Planned, type ScanOptions, scanNode } from "../plan/scan.ts";

export interface RoundOptions extends Pick<RunOptions, "session" | "concurrency" | "sinks"> {
  readonly observe: ObserveNodeOptions;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly policy: HealPolicy;
  readonly remainingMs: () => number;
  /** After it no step is started, and steps in flight are abandoned. */
  readonly deadline: AbortSignal;
  /** After it no further action is started; those in flight have until the deadline. */
  readonly stop?: AbortSignal;
  /** Stops at the plan. */
  readonly dryRun: boolean;
}

/** Where a round scans, and what of its plan may run. */
export interface RoundPipeline extends ScanOptions, Pick<RunOptions, "runtime"> {
  /** Why nothing of a plan may run now. */
  readonly caution?: (planned: Planned) => string | undefined;
}

/** `planned`: there was nothing that may be healed now, or only the plan was asked for. */
export type Round =
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "planned"; readonly seen: Planned; readonly plan: Plan; readonly note?: string }
  | { readonly kind: "healed"; readonly seen: Healing; readonly plan: Plan };

/** One round of `heal --yes`. */
export async function healRound({ caution, ...pipeline }: RoundPipeline, options: RoundOptions): Promise<Round> {
  const seen = await scanNode(pipeline);
  if (seen.snapshot.cri.status === "failed") return { kind: "failed", reason: seen.snapshot.cri.error.message };
  const note = caution?.(seen);
  const plan = note === undefined ? seen.plan : { ...seen.plan, actions: [] };
  if (options.dryRun || plan.actions.length === 0) return { kind: "planned", seen, plan, note };
  const healing = await run(seen, {
    ...pipeline,
    sinks: options.sinks,
    session: options.session,
    concurrency: options.concurrency,
    cniCacheDir: options.observe.cniCacheDir,
    // No kubelet runs yet that could finish a pod.
    waits: { ...DEFAULT_WAITS, actMs: Math.min(DEFAULT_WAITS.actMs, options.remainingMs()), kubeletMs: 0, socketMs: 0 },
    interruption: { stop: options.stop ?? options.deadline, giveUp: options.deadline },
  });
  if (!healing.ok) return { kind: "failed", reason: `${healing.refusal.message} ${healing.refusal.next}` };
  return { kind: "healed", seen: healing.value, plan };
}

/** Through the runtime that answers at this endpoint. */
export function throughRuntime(
  { observe, env, policy }: Pick<RoundOptions, "observe" | "env" | "policy">,
  mode: "node's own" | "borrowed",
): RoundPipeline {
  return {
    observe: () => observeNode(observe, env),
    policy: (first) => ({
      ...policy,
      // With a wrong clock, kubelet reuses attempt numbers: then every dead sandbox blocks it.
      allDead: policy.allDead || isClockBehindRecords(first),
      kubeletFollows: first.kubernetes.source !== "none" && (mode === "borrowed" || hasJustStarted(first)),
    }),
    caution: mode === "borrowed" ? ({ snapshot }) => needsAgent(snapshot) : undefined,
  };
}

/**
 * Without any runtime: cache files from before this boot that would make every removal fail are quarantined before the
 * runtime starts.
 */
export function withoutRuntime(
  { observe, policy }: Pick<RoundOptions, "observe" | "policy">,
  timeoutMs: number,
): RoundPipeline {
  return {
    observe: () => observeFiles(observe, timeoutMs),
    policy: () => policy,
    diagnose: (snapshot) => offlineDiagnosis(snapshot, brokenCaches(snapshot), policy),
    runtime: (_snapshot, access) => absentRuntime(access),
  };
}

/** Why a borrowed runtime would heal nothing here, by files alone. */
export async function missingAgent(observe: ObserveNodeOptions, confDir: string, timeoutMs: number) {
  return needsAgent(await observeFiles(observe, timeoutMs, confDir));
}

async function observeFiles(
  observe: ObserveNodeOptions,
  timeoutMs: number,
  conf = placesAt("").cniConfDir,
): Promise<Snapshot> {
  const { hostRoot: root, cniCacheDir: cacheDir, multusDir, node } = observe;
  const signal = AbortSignal.timeout(timeoutMs);
  await refuseHungMounts(root, [cacheDir, ...(multusDir === undefined ? [] : [multusDir])], signal);
  const observedAt = new Date();
  const network = Promise.resolve({ cniDirs: { conf, bin: [] }, isContainerd: true });
  const cni = await readCni({ root, cacheDir, multusDir, network, signal });
  const unread = absent<never>("not read before the runtime's start");
  const facts = { observedAt, boot: readBoot({ root, now: observedAt }), metadata: unread, processes: unread, cni };
  return { ...offlineSnapshot(facts, node), cni };
}

function brokenCaches({ cni, boot }: Snapshot): readonly Finding[] {
  if (boot.status !== "read") return [];
  const { startedAt } = boot.value;
  return classes.flatMap((failureClass) =>
    (failureClass.cacheFiles?.(cni) ?? [])
      .filter(isBroken)
      // A file of this boot may be in use by a plugin.
      .filter(({ modifiedAt }) => modifiedAt < startedAt)
      .map((file) =>
        toFinding(failureClass, {
          severity: "critical",
          subject: { type: "file", path: file.path, sandboxId: file.sandboxId },
          summary: "no removal of its sandbox can succeed",
          evidence: [{ source: "cni", fact: brokenInWords(file) }],
          cure: [stepToQuarantine(file)],
        }),
      ),
  );
}

/** Plugins that only forward the request to their own pod, or to the API server. */
const AGENT_PLUGINS = new Set([
  "calico",
  "cilium-cni",
  "kube-ovn",
  "antrea",
  "ovn-k8s-cni-overlay",
  "aws-cni",
  "azure-vnet",
  "multus-shim",
  "weave-net",
]);

/** Whether the plugin of this node's network cannot work before its agent runs. */
function needsAgent({ cni }: Pick<Snapshot, "cni">): string | undefined {
  const plugins = valueOr(cni.conf, undefined)?.plugins ?? [];
  const agent = plugins.find(({ type }) => AGENT_PLUGINS.has(type))?.type;
  if (agent === undefined) return undefined;
  return `${agent} needs its agent to take a network down, which cannot be up yet: left for after the start`;
}

/** By then kubelet takes down what died with the machine. */
const KUBELET_SECONDS = 60;

function hasJustStarted({ runtime, boot }: Snapshot): boolean {
  if (runtime.process === undefined || boot.status !== "read") return false;
  return boot.value.uptimeSeconds - runtime.process.startedSecondsAfterBoot < KUBELET_SECONDS;
}

/** Dead sandboxes that need no repair. */
export function leftToKubelet({ seen }: Exclude<Round, { kind: "failed" }>): readonly string[] {
  return seen.plan.leftAlone.flatMap(({ finding, reason }) => (reason.code === "kubelet-follows" ? [finding.id] : []));
}

/** A smaller difference is load, not a clock step. */
const SLACK_MS = 60_000;

/** Whether the wall clock is before the newest time in the runtime's own records. */
function isClockBehindRecords(snapshot: Snapshot): boolean {
  const now = snapshot.observedAt.getTime();
  if (now < EARLIEST_PLAUSIBLE.getTime()) return true;
  const sandboxes = valueOr(snapshot.cri, undefined)?.sandboxes ?? [];
  return sandboxes.some(({ createdAt }) => createdAt !== ZERO_TIME && Number(createdAt / 1_000_000n) > now + SLACK_MS);
}
