import { RuntimeError } from "../runtime/errors.ts";
import type { Interruption } from "./interruption.ts";
import { loadWatch } from "./load-watch.ts";
import type { Pool } from "./pool.ts";
import { type ProbeRules, probeGate } from "./probe-gate.ts";
import type { StormBrake } from "./storm-brake.ts";
import type { TurnKind } from "./turn-kind.ts";

/**
 * Makes a call that sets network plugins to work, when it is its turn: only so many at a time. Gives the reason when it
 * was not made after all, because the run is to end or plugins are not to be fed any longer.
 */
export type Turn = (call: () => Promise<void>, kind?: TurnKind) => Promise<string | undefined>;

export interface TurnRules {
  readonly places: Pool;
  readonly brake: StormBrake;
  readonly probes: ProbeRules;
  readonly interruption: Interruption;
}

/**
 * Few at first, so that a plugin that cannot work is not fed many; each that succeeds makes room for some more. Not for
 * all: a pod in the host's network is removed without any plugin.
 */
const MORE_WITH_EACH = 4;

export function turns({ places, brake, probes, interruption }: TurnRules): Turn {
  const gate = probeGate(probes);
  let hadTooMuch = false;
  const slowDown = (): void => {
    hadTooMuch = true;
    places.slowDown();
  };
  const load = loadWatch({ slowDown, speedUp: () => places.speedUp() });

  async function observed(call: () => Promise<void>): Promise<void> {
    const startedAt = performance.now();
    try {
      await call();
    } catch (error) {
      if (error instanceof RuntimeError && brake.failed(error.text).contention) slowDown();
      throw error;
    }
    brake.succeeded();
    if (!hadTooMuch) places.speedUp(MORE_WITH_EACH);
    load.took(performance.now() - startedAt);
  }

  async function take(call: () => Promise<void>): Promise<string | undefined> {
    return await places.one(async () => {
      const objection = reasonToHold(interruption, brake);
      if (objection === undefined) await observed(call);
      return objection;
    });
  }

  return async (call, kind = "calls-plugins") => {
    if (kind === "no-plugins") return await take(call);
    let objection: string | undefined;
    const unanswered = await gate.run(async () => {
      objection = await take(call);
    });
    return unanswered === undefined ? objection : brake.unanswered(unanswered);
  };
}

/** Asked before a step is begun, and again when its turn has come: much may have happened in between. */
export function reasonToHold({ stop }: Interruption, brake: StormBrake | undefined): string | undefined {
  return stop.aborted ? "the run was interrupted before it came to this" : brake?.reason();
}
