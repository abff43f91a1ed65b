import { isFailing } from "../evidence/pending.ts";
import type { NodeReport, ReportedFinding } from "./node-report.ts";
import { count, countByKind } from "./words.ts";

/**
 * What command line, page, condition, events and metrics call a node: one word for one state. A verdict `ghosts` without
 * a ghost is about leaks or other findings.
 */
export type NodeState = "no-pods-start" | "ghosts" | "leaks" | "findings" | "degraded" | "unknown" | "healthy";

export const NODE_STATE_HEADINGS: Readonly<Record<NodeState, string>> = {
  "no-pods-start": "No pods start",
  ghosts: "Ghosts",
  leaks: "Leaks",
  findings: "Findings",
  degraded: "Degraded",
  unknown: "Unknown",
  healthy: "Healthy",
};

export const NODE_STATES = Object.keys(NODE_STATE_HEADINGS) as readonly NodeState[];

type Judged = Pick<NodeReport, "verdict" | "findings" | "pending">;

/** The verdict by what was found, whether or not pods start. */
export function foundState({ verdict, findings }: Pick<Judged, "verdict" | "findings">): NodeState {
  if (verdict !== "ghosts") return verdict;
  return stateOfFindings(findings);
}

export function stateOfFindings(findings: readonly Pick<ReportedFinding, "kind">[]): "ghosts" | "leaks" | "findings" {
  if (findings.some(({ kind }) => kind === "ghost")) return "ghosts";
  return findings.length > 0 && findings.every(({ kind }) => kind === "leak") ? "leaks" : "findings";
}

/** `2 ghosts, 1 leak on edge-7`, without a full stop. */
export function foundWords({ verdict, findings, pending = [] }: Judged, node: string): string {
  const failing = pending.filter(isFailing).length;
  switch (verdict) {
    case "ghosts":
      return `${countByKind(findings)} on ${node}`;
    case "degraded":
      return `no ghosts on ${node}, but ${failing === 0 ? "the node starts no pods" : `${count(failing, "failure")} reported`}`;
    case "unknown":
      return `could not determine whether there are ghosts on ${node}`;
    case "healthy":
      return `no ghosts on ${node}`;
  }
}

/** Whatever was found: pods come first. */
export function nodeState(report: Judged & Pick<NodeReport, "podCreation">): NodeState {
  return report.podCreation?.able === "no" ? "no-pods-start" : foundState(report);
}

export const CANNOT_CREATE = "this node cannot create pods";

/** The heading above all others while no pod can be created: undefined if pods start, or if that is unknown. */
export function creationHeading({
  podCreation,
  sandboxes,
}: Pick<NodeReport, "podCreation" | "sandboxes">): string | undefined {
  if (podCreation?.able !== "no") return undefined;
  return sandboxes.ready > 0 ? "No new pods start" : NODE_STATE_HEADINGS["no-pods-start"];
}

/** What became of earlier tries to heal a finding, and what follows. */
export interface Retries {
  readonly times: number;
  /** When the agent tries again; ISO. */
  readonly nextTryAt?: string | undefined;
  /** Its budget is spent. */
  readonly givenUp?: boolean | undefined;
}

/** `failed 2×, next try at 2026-03-01T11:45:00Z`; undefined before the first failure. */
export function retryWords({ times, nextTryAt, givenUp }: Retries): string | undefined {
  if (times === 0 && givenUp !== true) return undefined;
  const failed = times === 0 ? [] : [`failed ${times}×`];
  const next = nextTryAt === undefined ? [] : [`next try at ${nextTryAt}`];
  return [...failed, ...(givenUp === true ? ["given up"] : []), ...next].join(", ");
}

/** The same in a column of a table. */
export function retryWord({ times, givenUp }: Retries): string {
  return givenUp === true ? "given up" : `failed ${times}×`;
}
