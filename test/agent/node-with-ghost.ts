import type { ClassPolicy } from "../../src/agent/policy/agent-policy.ts";
import {
  addressOf,
  containerOf,
  idOf,
  LOST,
  type NodeParts,
  recordOf,
  sandboxOf,
} from "../support/snapshot-builder.ts";
import type { ActingAgent } from "./acting-agent.ts";

export const CLASS = "dead-after-crash";
export const GHOST = `${CLASS}/${idOf("a")}`;
/** Died with the node an hour ago. */
export const WITH_GHOST: NodeParts = {
  sandboxes: [sandboxOf("a", { createdSecondsAgo: 7200 })],
  containers: [containerOf("a", { exit: LOST })],
  records: [recordOf("a")],
  addresses: [addressOf("a", "10.88.0.2")],
};

export function withClass(agent: ActingAgent, change: Partial<ClassPolicy>): void {
  const known = agent.policy.classes.get(CLASS);
  if (known === undefined) throw new Error(`there is no class ${CLASS}`);
  agent.policy = { ...agent.policy, classes: new Map(agent.policy.classes).set(CLASS, { ...known, ...change }) };
}

export function kinds({ events }: ActingAgent): readonly string[] {
  return events.map(({ kind }) => kind).filter((kind) => kind !== "scanned" && kind !== "verdict");
}

export function standing(agent: ActingAgent): string | undefined {
  return agent.state().sightings[0]?.standing.kind;
}
