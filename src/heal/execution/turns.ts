import { RuntimeError } from "../../runtime/errors.ts";
import type { HealReason } from "../heal-reason.ts";
import type { FreshFacts } from "./fresh-facts.ts";
import type { StormBrake } from "./storm-brake.ts";
import type { Interruption } from "./waits.ts";

/**
 * Makes a call that runs network plugins, when it is its turn: a limited number at a time. Returns the reason when it
 * was not made after all, because the run is to end or the brake is on.
 */
export type Turn = (call: () => Promise<void>, kind?: TurnKind) => Promise<HealReason | undefined>;

interface TurnRules {
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
      const objection = reasonToPause(interruption, brake);
      if (objection === undefined) await observed(call);
      return objection;
    });
  }

  return async (call, kind) => {
    if (kind === "no-plugins") return await take(call);
    let objection: HealReason | undefined;
    const unanswered = await gate.run(async () => {
      objection = await take(call);
    });
    return unanswered === undefined ? objection : brake.unanswered(unanswered);
  };
}

/** Checked before a step is started, and again when its turn has come: much may have happened in between. */
export function reasonToPause({ stop }: Interruption, brake: StormBrake | undefined): HealReason | undefined {
  return stop.aborted ? { code: "interrupted" } : brake?.reason();
}

/**
 * A pod in the host's network, or one whose network is down already, is removed without any plugin: its success proves
 * nothing about the network. The runtime has a cached result for every other.
 */
type TurnKind = "calls-plugins" | "no-plugins";

export async function turnKindOf(sandboxId: string, facts: Pick<FreshFacts, "resultFiles">): Promise<TurnKind> {
  return (await facts.resultFiles(sandboxId)).length > 0 ? "calls-plugins" : "no-plugins";
}

/**
 * Until one call has succeeded, calls are made one at a time. One that gets no answer within the
 * patience lets the next one try, for it may hang for a reason of its own; when several in a row get none, the cause is
 * shared, and no more are made.
 */
interface ProbeRules {
  readonly patienceMs: number;
  /** Calls without an answer, and not one success, after which the rest is not made. */
  readonly mostUnanswered: number;
}

interface ProbeGate {
  /** Makes the call when it may be made; gives the number of unanswered calls where it was not. */
  run(call: () => Promise<void>): Promise<number | undefined>;
}

export function probeGate({ patienceMs, mostUnanswered }: ProbeRules): ProbeGate {
  let isOpen = false;
  let isProbing = false;
  let unanswered = 0;
  const waiting: (() => void)[] = [];

  function wake(): void {
    isProbing = false;
    // The first of them probes next; those that may not go yet wait again, in the same order.
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
      // Others have gone on without one that was late; only its success changes anything for them.
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

/** Limits how many jobs run at a time. A job that takes longer than `patienceMs` steps aside: its slot goes to the next. */
interface SemaphoreOptions {
  readonly slots: number;
  readonly patienceMs: number;
  /** Jobs that may have stepped aside at a time. More hung calls than this at once would be a storm. */
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
  /** Of jobs that are out of patience while too many have stepped aside already. */
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
