/** What the dashboard of a cluster shows. Names and messages in it were written by others. */
export interface FleetState {
  readonly version: string;
  /** The API server's address. */
  readonly cluster: string;
  /** When it was read, by this machine's clock; missing before the first answer. */
  readonly readAt?: string;
  /** Why the last read failed: what is shown is older. */
  readonly trouble?: string;
  /** What could not be read, and what is lost without it. */
  readonly problems: readonly string[];
  /** The worst first. */
  readonly nodes: readonly FleetRow[];
  readonly classes: readonly FleetClass[];
  readonly blockedPods: readonly BlockedPod[];
  readonly heals: readonly RunningHeal[];
  /** Why agents do not heal, each with its nodes. */
  readonly onHold: readonly { readonly message: string; readonly nodes: readonly string[] }[];
  /** Missing if they could not be read. */
  readonly slots?: readonly Slot[];
}

export interface FleetRow {
  readonly name: string;
  readonly verdict: "healthy" | "degraded" | "ghosts" | "unknown";
  /** No agent confirms the report. */
  readonly isStale: boolean;
  readonly status: string;
  readonly agent: string;
  /** Findings by class. */
  readonly classes: readonly { readonly class: string; readonly count: number }[];
  readonly blocked: number;
  /** Since when it cannot create pods; "" where that is unknown. */
  readonly cannotStart?: string;
}

interface FleetClass {
  readonly id: string;
  readonly title: string;
  readonly nodes: number;
  readonly findings: number;
}

interface BlockedPod {
  readonly pod: string;
  readonly node: string;
}

interface RunningHeal {
  readonly node: string;
  readonly what: string;
  /** The user who asked; missing where the agent heals on its own. */
  readonly by?: string;
}

interface Slot {
  readonly name: string;
  /** The node that heals; "" where it is free. */
  readonly holder: string;
}
