import { diagnose } from "../diagnose/diagnose.ts";
import { type ObserveNodeOptions, observeNode } from "../diagnose/observe-node.ts";
import { duringRun } from "../evidence/policy.ts";
import { DEFAULT_WAITS } from "../heal/execution/waits.ts";
import { type PipelineOptions, type Planned, runPipeline, type Scanned } from "../heal/pipeline.ts";
import { valueOr } from "../host/source.ts";
import { planHealing } from "../plan/plan.ts";
import { EARLIEST_PLAUSIBLE, type HealPolicy } from "../plan/policy.ts";
import { type Runtime, ZERO_TIME } from "../snapshot/types/runtime.ts";
import type { Snapshot } from "../snapshot/types/snapshot.ts";

export interface HealOnceOptions extends Pick<PipelineOptions, "session" | "concurrency" | "onResult" | "onWarning"> {
  readonly observe: ObserveNodeOptions;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly policy: HealPolicy;
  readonly remainingMs: () => number;
  /** After it no step is started, and steps in flight are abandoned. */
  readonly deadline: AbortSignal;
}

export type HealedOnce =
  | {
      readonly kind: "healed";
      readonly healed: number;
      /** Remaining findings. */
      readonly left: readonly string[];
      /** Ids of the sandboxes that the runtime lists now. */
      readonly listed: readonly string[];
      readonly runtime: Runtime;
      readonly note?: string;
    }
  | { readonly kind: "failed"; readonly reason: string };

/** What one round would do. `left`: nothing now, for the reason in `note` or because the policy allows nothing. */
export type Round =
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "left"; readonly scanned: Scanned; readonly note?: string }
  | { readonly kind: "planned"; readonly planned: Planned; readonly policy: HealPolicy };

async function scan(
  { observe, env }: Pick<HealOnceOptions, "observe" | "env">,
  policy: HealPolicy,
  first?: Snapshot,
): Promise<Scanned> {
  const snapshot = await observeNode(observe, env);
  return { snapshot, diagnosis: diagnose(snapshot, duringRun(policy, first, snapshot)) };
}

/** Scans and plans like `heal`, and also checks for an untrusted clock and for agents that are not up. */
export async function planRound(
  options: Pick<HealOnceOptions, "observe" | "env" | "policy">,
  isBeforeStart: boolean,
): Promise<Round> {
  const scanned = await scan(options, options.policy);
  const { snapshot, diagnosis } = scanned;
  if (snapshot.cri.status === "failed") return { kind: "failed", reason: snapshot.cri.error.message };
  const agent = isBeforeStart ? needsAgent(snapshot) : undefined;
  if (agent !== undefined) {
    const note = `${agent} needs its agent to take a network down, which cannot be up yet: left for after the start`;
    return { kind: "left", scanned, note };
  }
  // With a wrong clock, kubelet reuses attempt numbers: then every dead sandbox blocks it.
  const policy = isClockBehindRecords(snapshot) ? { ...options.policy, allDead: true } : options.policy;
  const plan = planHealing(diagnosis, policy);
  return plan.actions.length === 0
    ? { kind: "left", scanned }
    : { kind: "planned", planned: { ...scanned, plan }, policy };
}

/** One round of `heal --yes`. */
export async function healOnce(options: HealOnceOptions, isBeforeStart: boolean): Promise<HealedOnce> {
  const round = await planRound(options, isBeforeStart);
  if (round.kind === "failed") return round;
  if (round.kind === "left") {
    const { snapshot, diagnosis } = round.scanned;
    const note = round.note === undefined ? {} : { note: round.note };
    return { kind: "healed", healed: 0, left: diagnosis.findings.map(({ id }) => id), ...note, ...seenIn(snapshot) };
  }
  const { planned, policy } = round;
  const healing = await runPipeline(planned, {
    ...options,
    scan: (first) => scan(options, policy, first),
    plan: (diagnosis) => planHealing(diagnosis, policy),
    cniCacheDir: options.observe.cniCacheDir,
    // No kubelet runs yet that could finish a pod.
    waits: {
      ...DEFAULT_WAITS,
      actMs: Math.min(DEFAULT_WAITS.actMs, options.remainingMs()),
      kubeletMs: 0,
      socketMs: 0,
    },
    interruption: { stop: options.deadline, giveUp: options.deadline },
  });
  if (!healing.ok) return { kind: "failed", reason: `${healing.refusal.message} ${healing.refusal.next}` };
  const { results, diagnosis, snapshot } = healing.value;
  const healed = results.filter(({ outcome }) => outcome === "healed").length;
  return { kind: "healed", healed, left: diagnosis.findings.map(({ id }) => id), ...seenIn(snapshot) };
}

function seenIn({ cri, runtime }: Snapshot): { readonly listed: readonly string[]; readonly runtime: Runtime } {
  return { listed: valueOr(cri, undefined)?.sandboxes.map(({ id }) => id) ?? [], runtime };
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

/** The plugin of this node's network that cannot work before its agent runs, if any. */
function needsAgent(snapshot: Snapshot): string | undefined {
  const plugins = valueOr(snapshot.cni.conf, undefined)?.plugins ?? [];
  return plugins.find(({ type }) => AGENT_PLUGINS.has(type))?.type;
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
