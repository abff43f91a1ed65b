const SIGNALS: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];

/** Ctrl-C aborts the signal once; a second one ends the program as usual. */
export function interruptible(onStop: () => void = () => undefined) {
  const stop = new AbortController();
  const onSignal = (): void => {
    dispose();
    onStop();
    stop.abort();
  };
  const dispose = (): void => {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return { signal: stop.signal, dispose };
}
