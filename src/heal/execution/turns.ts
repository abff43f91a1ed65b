import { RuntimeError } from "../../runtime/errors.ts";
import type { HealReason } from "../heal-reason.ts";
import type { Interruption } from "./interruption.ts";
import { type ProbeRules, probeGate } from "./probe-gate.ts";
import type { Semaphore } from "./semaphore.ts";
import type { StormBrake } from "./storm-brake.ts";
import type { TurnKind } from "./turn-kind.ts";

/**
 * Makes a call that sets network plugins to work, when it is its turn: only so many at a time. Gives the reason when it
 * was not made after all, because the run is to end or plugins are not to be fed any longer.
 */
export type Turn = (call: () => Promise<void>, kind?: TurnKind) => Promise<HealReason | undefined>;

export interface TurnRules {
  readonly slots: Semaphore;
  readonly brake: StormBrake;
  readonly probes: ProbeRules;
  readonly interruption: Interruption;
}

export function turns({ slots, brake, probes, interruption }: TurnRules): Turn {
  const gate = probeGate(probes);

  async function observed(call: () => Promise<void>): Promise<void> {
    try {
      await call();
    } catch (error) {
      if (error instanceof RuntimeError) brake.failed(error.text);
      throw error;
    }
    brake.succeeded();
  }

  async function take(call: () => Promise<void>): Promise<HealReason | undefined> {
    return await slots.run(async () => {
      const objection = reasonToHold(interruption, brake);
      if (objection === undefined) await observed(call);
      return objection;
    });
  }

  return async (call, kind = "calls-plugins") => {
    if (kind === "no-plugins") return await take(call);
    let objection: HealReason | undefined;
    const unanswered = await gate.run(async () => {
      objection = await take(call);
    });
    return unanswered === undefined ? objection : brake.unanswered(unanswered);
  };
}

/** Asked before a step is begun, and again when its turn has come: much may have happened in between. */
export function reasonToHold({ stop }: Interruption, brake: StormBrake | undefined): HealReason | undefined {
  return stop.aborted ? { code: "interrupted" } : brake?.reason();
}
