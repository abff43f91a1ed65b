import type { FleetRow, FleetState } from "../../report/fleet-state.ts";
import type { Notice, Verdict } from "./verdict.ts";
import { listed } from "./words.ts";

const NOT_YET: Verdict = { tone: "unsure", headline: "Connecting", detail: "Waiting for the cluster's first answer." };

/** The worst of the nodes, in one line. */
export function fleetVerdict(state: FleetState | undefined): Verdict {
  if (state?.readAt === undefined)
    return state?.trouble === undefined
      ? NOT_YET
      : { tone: "unsure", headline: "The cluster does not answer", detail: state.trouble };
  const { nodes } = state;
  const having = (verdict: FleetRow["verdict"]) => nodes.filter((node) => node.verdict === verdict).length;
  const [ghosts, degraded, unknown] = [having("ghosts"), having("degraded"), having("unknown")];
  const detail = listed([
    [ghosts, "with ghosts"],
    [degraded, "degraded"],
    [unknown, "unknown"],
    [having("healthy"), "healthy"],
  ]);
  const of = `of ${nodes.length} ${nodes.length === 1 ? "node" : "nodes"}`;
  if (ghosts > 0) return { tone: "bad", headline: `${ghosts} ${of} with ghosts`, detail };
  if (degraded > 0) return { tone: "bad", headline: `${degraded} ${of} degraded`, detail };
  if (nodes.length === 0) return { tone: "unsure", headline: "No nodes", detail: "The cluster has no node." };
  return unknown > 0
    ? { tone: "unsure", headline: `${unknown} ${of} unknown`, detail }
    : { tone: "good", headline: "No ghosts", detail };
}

const NAMED = 5;

export function fleetNotices({ trouble, readAt, problems, onHold }: FleetState): readonly Notice[] {
  return [
    ...(trouble === undefined || readAt === undefined
      ? []
      : [{ title: "The cluster does not answer: this is older", text: trouble }]),
    ...onHold.map(({ message, nodes }) => {
      const more = nodes.length > NAMED ? ` and ${nodes.length - NAMED} more` : "";
      return { title: `Healing is on hold: ${nodes.slice(0, NAMED).join(", ")}${more}`, text: message };
    }),
    ...problems.map((text) => ({ title: "Not read", text })),
  ];
}

/** Nodes whose name contains the text, and that have the class. */
export function chosenRows(
  nodes: readonly FleetRow[],
  { text, classId }: { readonly text: string; readonly classId: string | undefined },
): readonly FleetRow[] {
  const wanted = text.trim().toLowerCase();
  return nodes.filter(
    ({ name, classes }) =>
      name.toLowerCase().includes(wanted) && (classId === undefined || classes.some((one) => one.class === classId)),
  );
}
