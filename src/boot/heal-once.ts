import { type ObserveNodeOptions, observeNode } from "../diagnose/observe-node.ts";
import { DEFAULT_WAITS } from "../heal/execution/waits.ts";
import { type RunOptions, run } from "../heal/pipeline.ts";
import { valueOr } from "../host/source.ts";
import { EARLIEST_PLAUSIBLE, type HealPolicy } from "../plan/policy.ts";
import { type Planned, type ScanOptions, scanNode } from "../plan/scan.ts";
import { type Runtime, ZERO_TIME } from "../snapshot/types/runtime.ts";
import type { Snapshot } from "../snapshot/types/snapshot.ts";

export interface HealOnceOptions extends Pick<RunOptions, "session" | "concurrency" | "sinks"> {
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
  | { readonly kind: "left" | "planned"; readonly planned: Planned; readonly note?: string };

/** Scans and plans like `heal`, and also checks for an untrusted clock and for agents that are not up. */
export async function planRound(
  options: Pick<HealOnceOptions, "observe" | "env" | "policy">,
  isBeforeStart: boolean,
): Promise<Round> {
  const planned = await scanNode(scanOptions(options));
  const { snapshot, plan } = planned;
  if (snapshot.cri.status === "failed") return { kind: "failed", reason: snapshot.cri.error.message };
  const agent = isBeforeStart ? needsAgent(snapshot) : undefined;
  if (agent !== undefined) {
    const note = `${agent} needs its agent to take a network down, which cannot be up yet: left for after the start`;
    return { kind: "left", planned, note };
  }
  return { kind: plan.actions.length === 0 ? "left" : "planned", planned };
}

function scanOptions({ observe, env, policy }: Pick<HealOnceOptions, "observe" | "env" | "policy">): ScanOptions {
  return {
    observe: () => observeNode(observe, env),
    // With a wrong clock, kubelet reuses attempt numbers: then every dead sandbox blocks it.
    policy: (first) => (isClockBehindRecords(first) ? { ...policy, allDead: true } : policy),
  };
}

/** One round of `heal --yes`. */
export async function healOnce(options: HealOnceOptions, isBeforeStart: boolean): Promise<HealedOnce> {
  const round = await planRound(options, isBeforeStart);
  if (round.kind === "failed") return round;
  if (round.kind === "left") {
    const { snapshot, diagnosis } = round.planned;
    const note = round.note === undefined ? {} : { note: round.note };
    return { kind: "healed", healed: 0, left: diagnosis.findings.map(({ id }) => id), ...note, ...seenIn(snapshot) };
  }
  const healing = await run(round.planned, {
    ...options,
    ...scanOptions(options),
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
