import { setTimeout as sleep } from "node:timers/promises";
import { type Healing, healNode } from "../heal/heal-node.ts";
import { inSession, type Planned } from "../heal/in-session.ts";
import type { Interruption } from "../heal/interruption.ts";
import { DEFAULT_WAITS } from "../heal/node-tools.ts";
import type { Outcome } from "../heal/outcome.ts";
import type { SessionOptions } from "../heal/session.ts";
import type { OpenCluster } from "../snapshot/open-cluster.ts";
import type { HealOrder } from "./cycle.ts";

export interface AgentHealOptions {
  readonly session: Omit<SessionOptions, "sleep" | "lockWaitMs">;
  readonly concurrency: number;
  readonly cniCacheDir: string;
  readonly cluster: OpenCluster | undefined;
  readonly interruption: Interruption;
  readonly onWarning: (warning: string) => void;
}

/**
 * Kubelet is not waited for, except to bring a CSI driver's socket back before pods are restarted for it: the stop that follows is the call that it would repeat itself within seconds, and whoever
 * waits for it keeps everything else on the node waiting.
 */
const WAITS = { ...DEFAULT_WAITS, kubeletMs: 0 };

/** One healing of the agent. The lock is not waited for either: the loop comes back. */
export async function healWithSession(
  shown: Planned,
  order: HealOrder,
  options: AgentHealOptions,
): Promise<Outcome<Healing>> {
  const { concurrency, cniCacheDir, cluster, interruption } = options;
  const session = { ...options.session, sleep, lockWaitMs: 0 };
  return await inSession(shown, { ...order, session }, async (opened, now) => {
    order.onBegin(now.plan.actions);
    const healing = await healNode(now, {
      session: opened,
      plan: order.plan,
      look: order.look,
      onResult: order.onResult,
      concurrency,
      cniCacheDir,
      waits: WAITS,
      sleep,
      interruption,
      ...(cluster === undefined ? {} : { cluster }),
    });
    for (const warning of opened.journal.warnings) options.onWarning(warning);
    return healing;
  });
}
