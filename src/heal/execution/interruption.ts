/** How a run is asked to end early. */
export interface Interruption {
  /** Nothing further is begun. */
  readonly stop: AbortSignal;
  /** What is under way is not waited for any longer. */
  readonly giveUp: AbortSignal;
}

/** A run that nobody interrupts. */
export function uninterrupted(): Interruption {
  return { stop: new AbortController().signal, giveUp: new AbortController().signal };
}
