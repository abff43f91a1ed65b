import { classById } from "../../classes/index.ts";
import { recognise } from "../../diagnose/explain/recognise.ts";
import { type Reason, reason } from "../../evidence/finding.ts";

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
  reason(): Reason | undefined;
  succeeded(): void;
  /** Accepts the runtime's error text; empty if it did not answer in time. */
  failed(text: string): void;
  /** Too many calls wait for an answer and none has succeeded: no more are made. Returns the reason. */
  unanswered(count: number): Reason;
}

export function stormBrake(): StormBrake {
  let cause: string | undefined;
  let inARow = 0;
  let pause: Reason | undefined;

  function count(of: string): number {
    inARow = of === cause ? inARow + 1 : 1;
    cause = of;
    return inARow;
  }

  return {
    reason: () => pause,
    unanswered: (waiting) => {
      pause ??= reason(
        "no-removal-answered",
        `the first ${waiting} removals have no answer, and none has succeeded; no more are tried. A network plugin or its daemon hangs: unghost scan names it. Repair that, then heal again`,
      );
      return pause;
    },
    succeeded: () => {
      inARow = 0;
    },
    failed: (text) => {
      if (text === "") {
        if (count("no answer") >= ENOUGH_UNANSWERED) pause = removalsUnanswered(inARow);
        return;
      }
      if (isContention(text)) return;
      const id = sharedCause(text);
      if (id !== undefined && count(id) >= ENOUGH) pause = causeShared(id, inARow, text);
    },
  };
}

function removalsUnanswered(times: number): Reason {
  return reason(
    "removals-unanswered",
    `${times} removals in a row were not answered in time; no more are tried. Most likely a network plugin hangs: see unghost scan, and the log of the network add-on's pod on this node`,
  );
}

function causeShared(classId: string, times: number, text: string): Reason {
  return reason(
    "shared-cause",
    `${times} removals in a row failed for the same cause (${classId}: ${classById(classId)?.title ?? classId}); no more are tried until that is repaired: ${innermost(text)}`,
  );
}

/** The plugin's own error, without the runtime's prefix, which names one sandbox. */
function innermost(text: string): string {
  return text.split(/failed \((?:add|delete)\): /).at(-1) ?? text;
}
