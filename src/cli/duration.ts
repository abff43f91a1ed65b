const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const DAY_MS = 24 * 3_600_000;

/**
 * Durations like in Go and kubectl: 90s, 1h30m, 500ms, and days like in Prometheus: 30d. A bare number means seconds.
 * Returns undefined for anything else.
 */
export function parseDurationMs(text: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) return Math.round(Number(text) * 1000);
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)];
  if (parts.length === 0 || parts.map((part) => part[0]).join("") !== text) return undefined;
  let total = 0;
  for (const [, number, unit] of parts) total += Number(number) * (unit === "d" ? DAY_MS : (UNIT_MS[unit ?? ""] ?? 0));
  return Math.round(total);
}

/** The reverse: parsed to the same value. */
export function durationText(milliseconds: number): string {
  if (milliseconds > DAY_MS && milliseconds % DAY_MS === 0) return `${milliseconds / DAY_MS}d`;
  let rest = milliseconds;
  let text = "";
  for (const [unit, length] of Object.entries(UNIT_MS).toReversed()) {
    const whole = Math.floor(rest / length);
    if (whole > 0) text += `${whole}${unit}`;
    rest -= whole * length;
  }
  return text === "" ? "0s" : text;
}
