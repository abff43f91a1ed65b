import { emptyMultusCache, runMultusPod } from "../../lab/faults/multus.ts";
import { useMultus } from "../../lab/multus.ts";
import type { LabNode } from "../../lab/node.ts";
import { startStubApi } from "../../lab/stub-api.ts";
import { ensureMultus } from "../../lab/tools.ts";
import { NO_REAL_NODE } from "../lab/real-node.ts";
import { keptPods, readyPods } from "./scanned-node.ts";

const multus = NO_REAL_NODE === undefined ? await ensureMultus() : { available: false as const, reason: NO_REAL_NODE };

export const HAS_MULTUS = multus.available;
/** For a title: why multus is not available. */
export const WHY_NO_MULTUS = multus.available ? "" : `: skipped, ${multus.reason}`;

/** A power cut with pods on multus; one of the dead ones has an empty cache. */
export async function multusPowerCut(node: LabNode) {
  const kept = await keptPods(node);
  await useMultus(node);
  const emptied = await runMultusPod(node, { name: "emptied", containers: [{ name: "main" }] });
  const dead = await runMultusPod(node, { name: "dead" });
  await node.powerCut();
  await emptyMultusCache(node, emptied);
  await node.powerOn();
  await startStubApi(node);
  return { emptied, dead, ready: await readyPods(node, runMultusPod), kept };
}
