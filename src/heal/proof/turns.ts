import type { Reason } from "../../evidence/finding.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { type FreshFacts, INTERRUPTED, type Interruption } from "./fresh-facts.ts";
import type { StormBrake } from "./storm-brake.ts";

/**
 * Makes a call that runs network plugins, with limited concurrency. Returns the reason if the call was not made,
 * because the run is stopping or the storm brake is on.
 */
export type Turn = (call: () => Promise<void>, kind?: TurnKind) => Promise<Reason | undefined>;

interface TurnRules {
  readonly slots: Semaphore;
  readonly brake: StormBrake;
  readonly probes: ProbeRules;
  readonly interruption: Interruption;
}

export function turns({ slots, brake, probes, interruption }: TurnRules): Turn {
  const probing = probeFirst(probes);

  async function observed(call: () => Promise<void>): Promise<void> {
    try {
      await call();
    } catch (error) {
      if (error instanceof RuntimeError) brake.failed(error.text);
      throw error;
    }
    brake.succeeded();
  }

  async function take(call: () => Promise<void>): Promise<Reason | undefined> {
    return await slots.run(async () => {
      const objection = reasonToPause(interruption, brake);
      if (objection === undefined) await observed(call);
      return objection;
    });
  }

  return async (call, kind) => {
    if (kind === "no-plugins") return await take(call);
    let objection: Reason | undefined;
    const unanswered = await probing.run(async () => {
      objection = await take(call);
    });
    return unanswered === undefined ? objection : brake.unanswered(unanswered);
  };
}

/** Checked before a step is started, and again when it gets its slot, because much may have changed in between. */
export function reasonToPause({ stop }: Interruption, brake: StormBrake | undefined): Reason | undefined {
  return stop.aborted ? INTERRUPTED : brake?.reason();
}

/**
 * A pod in the host network, or one whose network is down already, is removed without any plugin: its success proves
 * nothing about the network. The runtime has a cached result for every other.
 */
type TurnKind = "calls-plugins" | "no-plugins";

export async function turnKindOf(sandboxId: string, facts: Pick<FreshFacts, "resultFiles">): Promise<TurnKind> {
  return (await facts.resultFiles(sandboxId)).length > 0 ? "calls-plugins" : "no-plugins";
}

/**
 * Until one call has succeeded, calls are made one at a time. A call without an answer within the timeout lets the next
 * one try, because it may hang for a reason of its own; if several consecutive calls get none, the cause is shared, and
 * no more are made.
 */
interface ProbeRules {
  readonly patienceMs: number;
  /** Unanswered calls, without a success, after which the rest is not made. */
  readonly mostUnanswered: number;
}

interface Probing {
  /** Makes the call when it is allowed; returns the number of unanswered calls if it was not made. */
  run(call: () => Promise<void>): Promise<number | undefined>;
}

export function probeFirst({ patienceMs, mostUnanswered }: ProbeRules): Probing {
  let isOpen = false;
  let isProbing = false;
  let unanswered = 0;
  const waiting: (() => void)[] = [];

  function wake(): void {
    isProbing = false;
    // The first of them is the next probe; the others wait again, in the same order.
    for (const go of waiting.splice(0)) go();
  }

  async function probe(call: () => Promise<void>): Promise<void> {
    isProbing = true;
    let isUnanswered = false;
    const patience = setTimeout(() => {
      isUnanswered = true;
      unanswered += 1;
      wake();
    }, patienceMs);
    try {
      await call();
      isOpen = true;
    } finally {
      clearTimeout(patience);
      if (isUnanswered) unanswered -= 1;
      // The others have continued without a late call; only its success has an effect on them.
      if (!isUnanswered || isOpen) wake();
    }
  }

  return {
    run: async (call) => {
      while (isProbing) await new Promise<void>((resolve) => waiting.push(resolve));
      if (isOpen) await call();
      else if (unanswered >= mostUnanswered) return unanswered;
      else await probe(call);
      return undefined;
    },
  };
}

/** Limits the concurrent jobs. A job that takes longer than `patienceMs` gives up its slot. */
interface SemaphoreOptions {
  readonly slots: number;
  readonly patienceMs: number;
  /** The maximum number of jobs without a slot. More hung calls at once would be a storm. */
  readonly mostAside: number;
}

interface Semaphore {
  /** Waits for a slot, in the order of the calls, and runs the job in it. */
  run<T>(job: () => Promise<T>): Promise<T>;
}

export function semaphore({ slots, patienceMs, mostAside }: SemaphoreOptions): Semaphore {
  let busy = 0;
  let aside = 0;
  const waiting: (() => void)[] = [];
  /** Jobs past their timeout while too many others have given up their slot. */
  const impatient: (() => void)[] = [];

  function admit(): void {
    while (aside < mostAside && impatient.length > 0) impatient.shift()?.();
    while (busy < slots && waiting.length > 0) {
      busy += 1;
      waiting.shift()?.();
    }
  }

  return {
    run: async (job) => {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        admit();
      });
      let isAside = false;
      function stepAside(): void {
        isAside = true;
        aside += 1;
        busy -= 1;
      }
      const patience = setTimeout(() => {
        impatient.push(stepAside);
        admit();
      }, patienceMs);
      try {
        return await job();
      } finally {
        clearTimeout(patience);
        const at = impatient.indexOf(stepAside);
        if (at >= 0) impatient.splice(at, 1);
        if (isAside) aside -= 1;
        else busy -= 1;
        admit();
      }
    },
  };
}
