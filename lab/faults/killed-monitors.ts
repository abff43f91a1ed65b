import { readFileSync } from "node:fs";
import type { LabNode } from "../node.ts";
import { processesOf } from "../node-processes.ts";
import type { LabPod } from "../pods.ts";
import type { Injected } from "./injected.ts";

/**
 * SIGKILL of crio and of the pods' monitors, then of their containers: no process observes their exit, so that CRI-O
 * finds neither process nor exit code at its next start. Leaves crio down.
 */
export async function killedMonitors(node: LabNode, pods: readonly LabPod[]): Promise<Injected> {
  const ids = pods.flatMap(({ sandboxId, containerIds }) => [sandboxId, ...containerIds]);
  await node.killRuntime();
  const monitors = processesOf(node).filter(
    ({ command }) => command[0]?.endsWith("/conmon") && ids.some((id) => command.includes(id)),
  );
  const children = monitors.flatMap(({ pid }) => childrenOf(node, pid));
  for (const pid of [...monitors.map(({ pid: monitor }) => monitor), ...children]) await node.kill(pid);
  const did = `killed crio and ${monitors.length} monitors of ${pods.length} pods with their containers`;
  return { fault: "killed-monitors", did };
}

function childrenOf(node: LabNode, pid: number): readonly number[] {
  const text = readFileSync(node.livePath(`/proc/${pid}/task/${pid}/children`), "utf8");
  return text.split(" ").filter(Boolean).map(Number);
}
