import { durationInWords } from "../../host/text.ts";

/** "1 healed, 2 waiting": what is there, and only that. */
export function listed(parts: readonly (readonly [number, string])[]): string {
  return parts
    .filter(([number]) => number > 0)
    .map(([number, word]) => `${number} ${word}`)
    .join(", ");
}

/** How long something took: 40 ms and 12.3 s are what people compare. */
export function secondsInWords(seconds: number): string {
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;
}

export function ago(fromMs: number, nowMs: number): string {
  const seconds = (nowMs - fromMs) / 1000;
  return seconds < 1 ? "just now" : `${durationInWords(seconds)} ago`;
}

const TIME = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hour12: false,
});
export const DAY = new Intl.DateTimeFormat(undefined, {
  weekday: "short",
  hour: "2-digit",
  minute: "2-digit",
  hour12: false,
});

/** The time of day; with the day where it is not clear which one is meant. */
export function timeOfDay(ms: number, nowMs: number): string {
  const isRecent = nowMs - ms < 12 * 3600_000;
  return (isRecent ? TIME : DAY).format(ms);
}
