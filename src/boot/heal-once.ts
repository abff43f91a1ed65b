import { setTimeout as sleep } from "node:timers/promises";
import { type Diagnosis, diagnose } from "../diagnose/diagnose.ts";
import { healNode } from "../heal/heal-node.ts";
import { DEFAULT_WAITS } from "../heal/node-tools.ts";
import type { ActionResult } from "../heal/run-action.ts";
import { openHealSession, type SessionOptions } from "../heal/session.ts";
import { planHealing } from "../plan/plan.ts";
import type { HealPolicy } from "../plan/policy.ts";
import { type ObserveOptions, observe } from "../snapshot/observe.ts";
import { valueOr } from "../snapshot/source.ts";
import type { Runtime, Snapshot } from "../snapshot/types.ts";
import { needsAgent } from "./agent-networks.ts";
import { clockIsInsane } from "./insane-clock.ts";

export interface HealOnceOptions {
  readonly observe: ObserveOptions;
  readonly policy: HealPolicy;
  readonly session: Omit<SessionOptions, "sleep">;
  readonly concurrency: number;
  readonly remainingMs: () => number;
  readonly onResult: (result: ActionResult) => void;
}

export type HealedOnce =
  | {
      readonly kind: "healed";
      readonly healed: number;
      /** Findings that are still there. */
      readonly left: readonly string[];
      /** Ids of the sandboxes that the runtime lists now. */
      readonly listed: readonly string[];
      readonly runtime: Runtime;
      readonly note?: string;
    }
  | { readonly kind: "failed"; readonly reason: string };

/** One round of what `heal --yes` does, with what a boot adds to it: an untrusted clock, and agents that are not up. */
export async function healOnce(options: HealOnceOptions, isBeforeStart: boolean): Promise<HealedOnce> {
  const look = async (policy: HealPolicy): Promise<{ snapshot: Snapshot; diagnosis: Diagnosis }> => {
    const snapshot = await observe(options.observe, process.env);
    return { snapshot, diagnosis: diagnose(snapshot, policy) };
  };
  const first = await look(options.policy);
  if (first.snapshot.cri.status === "failed") return { kind: "failed", reason: first.snapshot.cri.error.message };
  const agent = isBeforeStart ? needsAgent(first.snapshot) : undefined;
  if (agent !== undefined) {
    const left = first.diagnosis.findings.map(({ id }) => id);
    const note = `${agent} needs its agent to take a network down, which cannot be up yet: left for after the start`;
    return { kind: "healed", healed: 0, left, note, ...seenIn(first.snapshot) };
  }
  // With a clock that lies, kubelet reuses attempt numbers: then every dead sandbox is in its way.
  const policy = clockIsInsane(first.snapshot) ? { ...options.policy, allDead: true } : options.policy;
  const plan = planHealing(first.diagnosis, policy);
  if (plan.actions.length === 0)
    return { kind: "healed", healed: 0, left: first.diagnosis.findings.map(({ id }) => id), ...seenIn(first.snapshot) };
  const session = await openHealSession({ ...options.session, sleep });
  if (!session.ok) return { kind: "failed", reason: `${session.refusal.message} ${session.refusal.next}` };
  try {
    const waits = {
      ...DEFAULT_WAITS,
      actMs: Math.min(DEFAULT_WAITS.actMs, options.remainingMs()),
      kubeletMs: 0,
      socketMs: 0,
    };
    const { results, diagnosis, snapshot } = await healNode(
      { snapshot: first.snapshot, plan },
      {
        session: session.value,
        plan: (found) => planHealing(found, policy),
        concurrency: options.concurrency,
        cniCacheDir: options.observe.cniCacheDir,
        waits,
        look: () => look(policy),
        sleep,
        onResult: options.onResult,
      },
    );
    const healed = results.filter(({ outcome }) => outcome === "healed").length;
    return { kind: "healed", healed, left: diagnosis.findings.map(({ id }) => id), ...seenIn(snapshot) };
  } finally {
    await session.value.close();
  }
}

function seenIn({ cri, runtime }: Snapshot): { readonly listed: readonly string[]; readonly runtime: Runtime } {
  return { listed: valueOr(cri, undefined)?.sandboxes.map(({ id }) => id) ?? [], runtime };
}
