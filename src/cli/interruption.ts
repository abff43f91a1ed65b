import type { Interruption } from "../heal/execution/waits.ts";
import type { Io } from "./io.ts";

/** A network plugin that is cut short may leave half of its work behind: what is under way gets this long to end. */
const GRACE_MS = 5000;
const SIGNALS: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * Turns Ctrl-C and the service manager's TERM into an orderly end: the first begins nothing more, the second gives up what
 * is under way, a third ends the process as usual. Until `dispose` is called.
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
