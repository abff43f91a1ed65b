import type { ReportedFinding } from "./node-report.ts";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Like kubectl's ages: 42s, 14m, 7h, 3d. A clock that was set back gives 0s, never a negative age. */
export function shortAge(since: string, now: string): string {
  const seconds = Math.max(0, Math.floor((Date.parse(now) - Date.parse(since)) / 1000));
  if (Number.isNaN(seconds)) return "-";
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  if (seconds < 2 * HOUR) return `${Math.floor(seconds / MINUTE)}m`;
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)}h`;
  return `${Math.floor(seconds / DAY)}d`;
}

/** `14m`; `>14m` if it may be longer; `-` if nothing on the node shows it. */
export function findingAge(
  { since, sinceSource }: Pick<ReportedFinding, "since" | "sinceSource">,
  now: string,
): string {
  if (since === undefined) return "-";
  return `${sinceSource === "boot" ? ">" : ""}${shortAge(since, now)}`;
}
