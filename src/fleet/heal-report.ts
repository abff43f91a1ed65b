import { printable } from "../host/text.ts";
import type { HealAnswer, HealedAction } from "../kube/ghost-heal.ts";
import { type Column, layOut } from "../report/output.ts";
import { count, wrap } from "../report/words.ts";
import type { NodeAnswer } from "./ask-node.ts";
import type { FleetNode } from "./fleet-nodes.ts";
import type { Printable } from "./output.ts";

/** How one node ended: its answer, or why there is none. */
export interface NodeResult {
  readonly node: string;
  readonly outcome: HealAnswer["outcome"] | "no-answer" | "declined";
  /** The name of the last GhostHeal. */
  readonly request?: string;
  readonly answer?: HealAnswer;
  /** Why a one-shot pod gave no answer; see docs/fleet.md. */
  readonly code?: string;
  /** Why there is no answer, and what to do. */
  readonly message?: string;
  readonly next?: string;
}

/** As `unghost heal`: 0 nothing left, 1 something left, 2 unknown, 3 refused. The first of these that some node has. */
export function healExitCode(results: readonly NodeResult[]): 0 | 1 | 2 | 3 {
  const is = (...outcomes: readonly NodeResult["outcome"][]) =>
    results.some(({ outcome }) => outcomes.includes(outcome));
  if (is("refused", "declined")) return 3;
  if (is("no-answer", "unknown") || results.length === 0) return 2;
  const isPlannedAndIll = results.some(({ outcome, answer }) => outcome === "planned" && answer?.verdict !== "healthy");
  return is("incomplete") || isPlannedAndIll ? 1 : 0;
}

/** The result of a node whose agent has not answered. */
export function unansweredResult(
  { name, agent, nodeStatus }: Pick<FleetNode, "name" | "agent" | "nodeStatus">,
  reply: Exclude<NodeAnswer, { kind: "answered" }>,
): NodeResult {
  if (reply.kind === "unanswered") {
    const message = `Its agent has read the request, and the outcome is unknown: ${reply.reason}.`;
    const next = `kubectl get ghostheal ${reply.request} -o yaml shows the answer once there is one.`;
    return { node: name, outcome: "no-answer", request: reply.request, message, next };
  }
  const waited = `${Math.round(reply.waitedMs / 1000)} s`;
  const standing = agent === "not-ready" ? "its agent is not ready" : "its agent may be older than this program";
  const message = `No agent has read the request within ${waited} (the node is ${nodeStatus}, ${standing}). It was withdrawn.`;
  const next = `Add --without-agents to heal it by a privileged one-shot pod. ${onTheNode(name)}`;
  return { node: name, outcome: "no-answer", message, next };
}

/** A node without an agent that was chosen by a label: privileged pods are started on named nodes, or when asked for. */
export function notNamed(name: string): NodeResult {
  const message = "No agent of unghost runs on this node.";
  const next = `Name the node or add --without-agents to heal it by a privileged one-shot pod. ${onTheNode(name)}`;
  return { node: name, outcome: "no-answer", message, next };
}

/** An agent has no consent but that of its own policy. */
export function needsPolicy(name: string): NodeResult {
  const message =
    "An agent runs on this node, and heals a manual class only where its own policy does: --allow is for nodes without one.";
  const next = `Set agent.classes.CLASS: heal, or log in to ${printable(name)} and run unghost heal --allow CLASS.`;
  return { node: name, outcome: "refused", message, next };
}

function onTheNode(name: string): string {
  return `Log in to ${printable(name)} and run unghost heal, or see kubectl get pods -A -o wide -l app.kubernetes.io/name=unghost.`;
}

const COLUMNS: readonly Column[] = [
  { heading: "RESULT" },
  { heading: "POD", shorten: { keep: "middle", comfortable: 40, least: 12 } },
  { heading: "CLASS", shorten: { keep: "start", comfortable: 40, least: 12 } },
  { heading: "JOURNAL" },
  { heading: "TIME", drop: "late" },
];

/** What was done on one node, with the ids of its journal. */
export function resultLines(
  { node, outcome, answer = { outcome: "unknown" }, message, next }: NodeResult,
  columns: number,
): readonly string[] {
  const { actions = [], left = [], totals, truncated } = answer;
  const rows = actions.map((action) => cellsOf(action).map((text) => ({ text: printable(text) })));
  const reasons = actions.flatMap(({ outcome: result, reason, pod, finding }) =>
    result === "healed" || reason === undefined ? [] : [`  ${printable(pod ?? finding)}: ${printable(reason)}`],
  );
  return [
    ...(rows.length === 0 ? [] : layOut(COLUMNS, rows, { width: columns, headings: true })),
    ...reasons.map((line) => wrap(line, columns, "    ")),
    wrap(`${printable(node)}: ${headline(outcome, totals)}`, columns, "  "),
    ...left.map((line) => wrap(`  left: ${printable(line)}`, columns, "    ")),
    ...[answer.message ?? message, answer.next ?? next].flatMap((text) =>
      text === undefined ? [] : [wrap(`  ${printable(text)}`, columns, "    ")],
    ),
    ...(truncated === true ? ["  … and more: unghost history on the node shows all of it"] : []),
  ];
}

function cellsOf({ outcome, pod, finding, class: id, journalId = "-", seconds }: HealedAction): readonly string[] {
  return [outcome, pod ?? finding, id, journalId, `${seconds.toFixed(1)}s`];
}

function headline(outcome: NodeResult["outcome"], totals: HealAnswer["totals"]): string {
  const healed = totals?.healed ?? 0;
  const left = count(totals?.left ?? 0, "finding");
  switch (outcome) {
    case "healed":
      return healed === 0 ? "nothing to heal" : `${healed} healed, nothing left`;
    case "incomplete":
      return `NOT ALL HEALED: ${healed} healed, ${left} left`;
    case "planned":
      return "dry run: nothing was changed";
    case "declined":
      return "nothing was changed";
    case "refused":
      return "REFUSED: nothing was changed";
    case "unknown":
      return "UNKNOWN";
    case "no-answer":
      return "NO ANSWER";
  }
}

/** The JSON contract of `unghost fleet heal`. */
export function printableHeal(results: readonly NodeResult[], columns: number): Printable {
  const items = results.map(({ answer, ...result }) => ({ ...result, ...answer }));
  return {
    document: { apiVersion: "unghost.dev/v1", kind: "FleetHeal", items } as Printable["document"],
    names: results.map(({ node }) => `node/${node}`),
    table: () => results.flatMap((result) => resultLines(result, columns)),
  };
}
