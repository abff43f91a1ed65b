import { printable } from "../../host/printable.ts";
import type { Api } from "../../kube/api.ts";
import { KubeError } from "../../kube/kube-error.ts";
import { readNodeReadiness } from "../../kube/node-readiness.ts";
import type { OpenCluster } from "../../kube/open-cluster.ts";
import type { Interruption } from "./interruption.ts";
import type { Sleep, Waits } from "./waits.ts";

/** What a Status that answers again has done for the node. */
export interface NodeReady {
  readonly code: "node-ready" | "node-not-ready" | "node-not-asked";
  readonly words: string;
}

export interface NodeReadyTools {
  /** Missing where nothing in the cluster may be asked. */
  readonly cluster?: OpenCluster;
  readonly waits: Pick<Waits, "lookMs" | "kubeletMs">;
  readonly sleep: Sleep;
  readonly interruption: Pick<Interruption, "stop">;
}

const POLL_MS = 1000;
const ANSWERS = "the runtime answers Status again";

/** Kubelet asks for Status every five seconds and reports a change with its next heartbeat. `node`: as the cluster calls it. */
export async function nodeReadiness(node: string | undefined, tools: NodeReadyTools): Promise<NodeReady> {
  if (node === undefined) return notAsked("no API server was asked");
  const { kubeletMs, lookMs } = tools.waits;
  try {
    const api = await tools.cluster?.(kubeletMs + lookMs);
    if (api === undefined) return notAsked("there is no Kubernetes API to ask");
    try {
      return await untilReady(api, node, tools);
    } finally {
      api.close();
    }
  } catch (error) {
    if (error instanceof KubeError) return notAsked(error.message);
    throw error;
  }
}

function notAsked(why: string): NodeReady {
  return { code: "node-not-asked", words: `${ANSWERS}; whether the node is Ready is not known: ${why}` };
}

async function untilReady(api: Api, node: string, { waits, sleep, interruption }: NodeReadyTools): Promise<NodeReady> {
  const startedAt = performance.now();
  for (;;) {
    const { ready, message } = await readNodeReadiness(api, node);
    if (ready) return { code: "node-ready", words: `${ANSWERS}, and the node ${node} is Ready` };
    const waitedMs = performance.now() - startedAt;
    if (waitedMs >= waits.kubeletMs || interruption.stop.aborted) {
      const seconds = Math.round(waitedMs / 1000);
      return {
        code: "node-not-ready",
        words: `${ANSWERS}, and the node ${node} is not Ready after ${seconds}s: ${printable(message)}; look at kubelet's log`,
      };
    }
    await sleep(POLL_MS);
  }
}
