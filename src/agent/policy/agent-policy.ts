import type { FleetPolicy } from "../../fleet/fleet-policy.ts";

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
