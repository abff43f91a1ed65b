import { crashLoops } from "../evidence/crash-loops.ts";
import { valueOr } from "../host/source.ts";
import type { Planned } from "../plan/scan.ts";

/** What is new since the previous scan. */
export interface Growth {
  readonly crashRestarts: number;
  readonly kernelStalls: number;
}

interface Baseline {
  readonly boot: string;
  /** By pod and container: the restart count of the last scan. */
  readonly restarts: ReadonlyMap<string, number>;
  readonly stalls: number | undefined;
}

/**
 * Turns the counts since boot of each scan into increments. Restarts before the first scan are not counted, and a loop
 * that stops and starts again is not counted twice. After a boot everything is new.
 */
export class GrowthMeter {
  #before: Baseline | undefined;

  take({ snapshot, diagnosis }: Pick<Planned, "snapshot" | "diagnosis">): Growth {
    const before = this.#before;
    const boot = valueOr(snapshot.boot, undefined)?.id ?? before?.boot ?? "";
    const isSameBoot = before === undefined || before.boot === boot;
    const known = before !== undefined && isSameBoot ? before.restarts : new Map<string, number>();
    const loops = crashLoops(diagnosis.view).map(
      ({ pod, container, restartsSinceBoot }) => [`${pod.uid} ${container ?? ""}`, restartsSinceBoot] as const,
    );
    const crashRestarts = loops.reduce((sum, [key, now]) => sum + Math.max(0, now - (known.get(key) ?? 0)), 0);

    const stalls = snapshot.kernel?.status === "read" ? snapshot.kernel.value.stalls.count : undefined;
    const stallsBefore = isSameBoot ? before?.stalls : 0;
    const kernelStalls = stalls === undefined || stallsBefore === undefined ? 0 : Math.max(0, stalls - stallsBefore);

    // A scan that could not read the pods keeps the previous counts.
    const pods = snapshot.cri.status === "read" ? diagnosis.view.sandboxesOfPod : undefined;
    const kept = [...known].filter(([key]) => pods === undefined || pods.has(podOf(key)));
    this.#before = {
      boot,
      restarts: new Map([...kept, ...loops.map(([key, now]) => [key, Math.max(now, known.get(key) ?? 0)] as const)]),
      stalls: stalls === undefined ? stallsBefore : Math.max(stalls, stallsBefore ?? 0),
    };
    return before === undefined ? NONE : { crashRestarts, kernelStalls };
  }
}

const NONE: Growth = { crashRestarts: 0, kernelStalls: 0 };

function podOf(key: string): string {
  return key.slice(0, key.indexOf(" "));
}
