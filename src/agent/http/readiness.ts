import type { AgentEvent } from "../state.ts";
import type { Watched } from "../store.ts";
import { verdictWords } from "../verdict-words.ts";

export type Readiness = { readonly ready: true } | { readonly ready: false; readonly message: string };

export interface ReadinessWatch {
  now(): Readiness;
  close(): void;
}

/** Ready: the last scan succeeded, and is recent. */
export function watchReadiness(
  store: Watched,
  readyWithinMs: () => number,
  nowMs: () => number = () => performance.now(),
): ReadinessWatch {
  let failure: string | undefined;

  function notice(event: AgentEvent): void {
    if (event.kind === "scan-failed") failure = event.reason;
    if (event.kind === "scanned") failure = undefined;
  }

  function now(): Readiness {
    const { scan } = store.state();
    if (failure !== undefined) return not(`the last scan failed: ${failure}`);
    if (scan === undefined) return not("no scan has been finished since the agent's start");
    const ageMs = nowMs() - scan.endedAtMs;
    if (ageMs > readyWithinMs()) {
      return not(`the last scan ended ${seconds(ageMs)} s ago, and one is due within ${seconds(readyWithinMs())} s`);
    }
    if (scan.report.verdict !== "unknown") return { ready: true };
    const { problem, next } = verdictWords(scan.report);
    return not(`${problem}. ${next.replace(/\.$/, "")}`);
  }

  return { now, close: store.onEvent(notice) };
}

function not(message: string): Readiness {
  return { ready: false, message };
}

function seconds(ms: number): number {
  return Math.round(ms / 1000);
}
