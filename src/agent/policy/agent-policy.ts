import type { FleetPolicy } from "../limits/breaker.ts";

/** The `agent` part of the configuration file, with every default filled in. */
export interface AgentPolicy {
  /** Every class of the catalogue. */
  readonly classes: ReadonlyMap<string, ClassPolicy>;
  /** Interval of the periodic full scan (fallback for missed events). */
  readonly scanEveryMs: number;
  /** Healing is allowed only within these; none: always. */
  readonly maintenanceWindows: readonly MaintenanceWindow[];
  readonly ignoredNamespaces: readonly string[];
  /** A pod whose name is held without a visible cause may be deleted, so that its controller re-creates it. */
  readonly recreatePods: boolean;
  /** Sync CNI plugins' files to disk as they are written. */
  readonly keepDurable: boolean;
  /** How long an entry stays in quarantine; 0: forever. */
  readonly quarantineRetentionMs: number;
  /** The maximum number of subjects per heal. */
  readonly cap: number;
  readonly fleet: FleetPolicy;
}

/**
 * - `observe`: shown, never touched. - `heal`: healed when its gates pass; for a manual class this is the operator's
 *   consent. - `off`: not detected.
 */
export type ClassMode = "observe" | "heal" | "off";

export interface ClassPolicy {
  readonly mode: ClassMode;
  /** The minimum age of a finding, from its first sighting by the monotonic clock. */
  readonly minAgeMs: number;
  /** Attempts on one subject before it is given up. */
  readonly attempts: number;
  /** The period in which attempts are counted. */
  readonly attemptsWithinMs: number;
  /** The minimum interval between two attempts on one subject; doubles with each failure. */
  readonly coolDownMs: number;
}

export interface MaintenanceWindow {
  /** 0 is Sunday; empty: every day. */
  readonly days: readonly number[];
  /** Minutes after midnight. An end before the start is on the next day. */
  readonly fromMinute: number;
  readonly toMinute: number;
  /** IANA name. */
  readonly timeZone: string;
}

const DAY_MINUTES = 24 * 60;
const MINUTE_MS = 60_000;
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
/** Each window opens at least once a week; daylight saving may skip one opening and adds an iteration or two. */
const MAX_HOPS = 20;

/**
 * 0 within a window, or without any; else the time until the next one opens. Whether one is open is always exact; in
 * the night with a repeated hour, its second opening is not predicted, but every scan checks again.
 */
export function untilWindowMs(windows: readonly MaintenanceWindow[], now: Date): number {
  if (windows.length === 0) return 0;
  return Math.min(...windows.map((window) => untilOpenMs(window, now)));
}

/**
 * Hops from one reading of the window's start to the next, by what the clock of the zone reads there: so neither the
 * skipped nor the doubled hour needs its own arithmetic.
 */
function untilOpenMs(window: MaintenanceWindow, now: Date): number {
  const startOfMinute = Math.floor(now.getTime() / MINUTE_MS) * MINUTE_MS;
  let at = startOfMinute;
  for (let hop = 0; hop < MAX_HOPS; hop++) {
    const local = localTime(new Date(at), window.timeZone);
    if (isWithin(window, local)) return Math.max(0, at - now.getTime());
    at += minutesUntil(window.fromMinute, local.minute) * MINUTE_MS;
  }
  return at - now.getTime();
}

function minutesUntil(target: number, minute: number): number {
  const ahead = (target - minute + DAY_MINUTES) % DAY_MINUTES;
  return ahead === 0 ? DAY_MINUTES : ahead;
}

function isWithin(
  { days, fromMinute, toMinute }: MaintenanceWindow,
  { day, minute }: ReturnType<typeof localTime>,
): boolean {
  const isOn = (which: number): boolean => days.length === 0 || days.includes(which);
  if (fromMinute < toMinute) return isOn(day) && minute >= fromMinute && minute < toMinute;
  // Across midnight: the hours after it belong to the day on which it opened.
  return (isOn(day) && minute >= fromMinute) || (isOn((day + 6) % 7) && minute < toMinute);
}

const formats = new Map<string, Intl.DateTimeFormat>();

function localTime(at: Date, timeZone: string) {
  let format = formats.get(timeZone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone,
      weekday: "short",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
    });
    formats.set(timeZone, format);
  }
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, value]));
  return {
    /** 0 is Sunday. */
    day: DAYS.indexOf(parts.get("weekday") ?? ""),
    /** Minutes after midnight on the wall clock of the zone. */
    minute: Number(parts.get("hour")) * 60 + Number(parts.get("minute")),
  };
}
