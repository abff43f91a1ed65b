import type { Cluster } from "../../lab/cluster/cluster.ts";
import { until } from "../../lab/poll.ts";

/** How soon the agent has to report after kubelet's first failed attempt. */
export const REPORTED_MS = 60_000;
const POLL_MS = 250;

interface EventList {
  readonly items: readonly { readonly reason: string; readonly message: string }[];
}

/** Waits until the node's condition, an event about the node and the agent's metrics all contain the class. */
export async function reportedByAgent(story: Cluster, classId: string): Promise<void> {
  const { api, node } = story;
  const events = `/api/v1/events?fieldSelector=involvedObject.kind=Node,involvedObject.name=${node.name}`;
  const metrics = ["curl", "-sS", "http://127.0.0.1:20258/metrics"];
  const missing = new Set<string>(["condition", "event", "metric"]);
  const probe = async () => {
    const now = await story.condition(node, "GhostSandboxes");
    if (now?.status === "True" && now.message?.includes(classId)) missing.delete("condition");
    const { items } = await api.get<EventList>(events);
    if (items.some(({ reason, message }) => reason === "GhostDetected" && message.includes(classId)))
      missing.delete("event");
    const { stdout } = await node.lab.exec(metrics);
    if (stdout.includes(`unghost_findings{class="${classId}"} 1\n`)) missing.delete("metric");
    return missing.size === 0 ? true : undefined;
  };
  try {
    await until("the agent has reported it", REPORTED_MS, probe, POLL_MS);
  } catch (error) {
    throw new Error(`${classId} is not reported as ${[...missing].join(", ")}`, { cause: error });
  }
}
