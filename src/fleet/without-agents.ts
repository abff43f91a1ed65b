import type { AgentStanding, Fleet, FleetNode } from "./fleet-nodes.ts";
import { isFailure } from "./one-shot/failure.ts";
import type { OneShot } from "./one-shot/job.ts";
import { type OpenApi, type RunOptions, runOnce } from "./one-shot/run.ts";
import { reportInLog, reportStatus } from "./one-shot/scan.ts";

/** How one-shot pods run, on whichever node. */
export type OneShotPlace = Pick<OneShot, "image" | "namespace">;

export interface WithoutAgents extends RunOptions {
  readonly place: OneShotPlace;
  readonly started: (node: string) => void;
}

/** A scan takes seconds; a node with hung mounts or a slow disk takes longer. */
const SCAN_SECONDS = 120;
/** As many privileged pods at a time. */
const AT_ONCE = 10;

const WITHOUT: readonly AgentStanding[] = ["none", "not-ready", "unreadable"];

/** Has no current report of an agent. */
export function isWithoutAgent({ agent }: FleetNode): boolean {
  return WITHOUT.includes(agent);
}

/** Scans each node without a current report by a one-shot pod. */
export async function scanWithoutAgents(open: OpenApi, fleet: Fleet, options: WithoutAgents): Promise<Fleet> {
  const waiting = fleet.nodes.filter(isWithoutAgent);
  const scanned = new Map<string, FleetNode>();
  const work = async () => {
    for (let node = waiting.shift(); node !== undefined && !options.signal.aborted; node = waiting.shift()) {
      options.started(node.name);
      scanned.set(node.name, await scanNode(open, node, options));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return { ...fleet, nodes: fleet.nodes.map((node) => scanned.get(node.name) ?? node) };
}

async function scanNode(open: OpenApi, node: FleetNode, { place, ...options }: WithoutAgents): Promise<FleetNode> {
  const shot: OneShot = { ...place, node: node.name, args: ["scan", "-o", "json"], deadlineSeconds: SCAN_SECONDS };
  const ran = await runOnce(open, shot, options);
  if (!ran.ok) return { ...node, oneShot: ran.failure };
  const report = reportInLog(ran.value, shot);
  if (isFailure(report)) return { ...node, oneShot: report };
  const status = reportStatus(report);
  return { ...node, verdict: status.verdict, report: status, oneShot: "scanned" };
}
