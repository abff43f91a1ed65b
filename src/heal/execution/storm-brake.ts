import { classById } from "../../classes/index.ts";
import { recognise } from "../../explain/recognise.ts";
import type { HealReason } from "../heal-reason.ts";

/** A lock that is held briefly, or a network namespace that another stop has just unmounted: worth a retry. */
const CONTENTION = /xtables lock|iptables: resource temporarily unavailable|unknown fs magic on/i;

export function isContention(text: string): boolean {
  return CONTENTION.test(text);
}

/** The class of a shared cause; undefined if the failure is specific to this sandbox. */
export function sharedCause(text: string): string | undefined {
  const known = recognise(text).map((match) => classById(match.class))[0];
  return known?.sharedCause === true ? known.id : undefined;
}

/** Consecutive failures of one cause after which no more calls are made. */
const ENOUGH = 3;
/** Each of these has hung for kubelet's timeout; the next call would most likely hang, too. */
const ENOUGH_UNANSWERED = 16;

export interface StormBrake {
  /** Why no more plugins should be called; undefined while calls succeed. */
  reason(): HealReason | undefined;
  succeeded(): void;
  /** Accepts the runtime's error text; empty if it did not answer in time. */
  failed(text: string): void;
  /** Too many calls wait for an answer and none has succeeded: no more are made. Returns the reason. */
  unanswered(count: number): HealReason;
}

export function stormBrake(): StormBrake {
  let cause: string | undefined;
  let inARow = 0;
  let reason: HealReason | undefined;

  function count(of: string): number {
    inARow = of === cause ? inARow + 1 : 1;
    cause = of;
    return inARow;
  }

  return {
    reason: () => reason,
    unanswered: (waiting) => {
      reason ??= { code: "no-removal-answered", count: waiting };
      return reason;
    },
    succeeded: () => {
      inARow = 0;
    },
    failed: (text) => {
      if (text === "") {
        if (count("no answer") >= ENOUGH_UNANSWERED) reason = { code: "removals-unanswered", times: inARow };
        return;
      }
      if (isContention(text)) return;
      const id = sharedCause(text);
      if (id !== undefined && count(id) >= ENOUGH) reason = { code: "shared-cause", class: id, times: inARow, text };
    },
  };
}
