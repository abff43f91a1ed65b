import type { Interruption } from "../heal/proof/fresh-facts.ts";
import type { Io } from "./io.ts";

/** An interrupted network plugin may leave incomplete work: calls in flight get this much time to end. */
const GRACE_MS = 5000;
const SIGNALS: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * Handles Ctrl-C and SIGTERM: the first stops new steps, the second aborts steps in flight, a third ends the process as
 * usual. Until `dispose` is called.
 */
export function interruptedBySignals(
  io: Pick<Io, "stderr">,
  signals = SIGNALS,
): Interruption & { readonly dispose: () => void } {
  const stop = new AbortController();
  const giveUp = new AbortController();
  let grace: NodeJS.Timeout | undefined;

  function onSignal(): void {
    if (stop.signal.aborted) {
      dispose();
      giveUp.abort();
      return;
    }
    io.stderr(`\nStopping: waiting up to ${GRACE_MS / 1000}s for in-flight actions. Press Ctrl-C again to abort.\n`);
    grace = setTimeout(() => giveUp.abort(), GRACE_MS);
    stop.abort();
  }
  function dispose(): void {
    clearTimeout(grace);
    for (const signal of signals) process.off(signal, onSignal);
  }

  for (const signal of signals) process.on(signal, onSignal);
  return { stop: stop.signal, giveUp: giveUp.signal, dispose };
}
