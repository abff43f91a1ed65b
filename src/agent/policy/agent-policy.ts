import type { FleetPolicy } from "../../fleet/fleet-policy.ts";

/** What the agent does without being asked: the `agent` part of the configuration file, with every default filled in. */
export interface AgentPolicy {
  /** Every class of the catalogue. */
  readonly classes: ReadonlyMap<string, ClassPolicy>;
  /** Interval of the periodic full scan (fallback for missed events). */
  readonly scanEveryMs: number;
  /** Acting is allowed within these only; none: always. */
  readonly maintenanceWindows: readonly MaintenanceWindow[];
  readonly ignoredNamespaces: readonly string[];
  /** A pod whose name is held by something that nothing shows may be deleted, for its controller to make it again. */
  readonly recreatePods: boolean;
  /** CNI plugins' files are synced to disk as they are written. */
  readonly keepDurable: boolean;
  /** How long an entry stays in quarantine; 0: forever. */
  readonly quarantineRetentionMs: number;
  /** The most subjects that one healing touches. */
  readonly cap: number;
  readonly fleet: FleetPolicy;
}

/**
 * - `observe`: shown, never touched. - `heal`: healed when its gates pass; for a manual class this is
 * the operator's consent. - `off`: not detected at all.
 */
export type ClassMode = "observe" | "heal" | "off";

export interface ClassPolicy {
  readonly mode: ClassMode;
  /** How long a finding must stand, by monotonic first sight, before it is touched. */
  readonly minAgeMs: number;
  /** Attempts on one subject before it is given up, loudly. */
  readonly attempts: number;
  /** The period that attempts are counted over. */
  readonly attemptsWithinMs: number;
  /** The least time between two attempts on one subject; doubles with each failure. */
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
