import { withApi } from "../../fleet/with-api.ts";
import { KubeError, orKubeError } from "../../kube/kube-error.ts";
import type { OpenCluster } from "../../kube/open-cluster.ts";
import { isSameMachine } from "../../snapshot/same-machine.ts";
import { deleteCondition, readNode } from "./node-condition.ts";

const REQUEST_MS = 5000;

export interface OwnNode {
  readonly openCluster: OpenCluster;
  /** What the cluster calls it. */
  readonly name: string;
  readonly hostRoot: string;
}

/** Whether the cluster still shows a condition of this machine; a KubeError where that is unknown. */
export async function findCondition({ openCluster, name, hostRoot }: OwnNode): Promise<"there" | "gone" | KubeError> {
  const node = await orKubeError(withApi(openCluster, REQUEST_MS, (api) => readNode(api, name)));
  if (node instanceof KubeError) return isNoCluster(node) ? "gone" : node;
  return node.condition !== undefined && isSameMachine(hostRoot, node) ? "there" : "gone";
}

export async function removeCondition({ openCluster, name }: OwnNode): Promise<KubeError | undefined> {
  const outcome = await orKubeError(withApi(openCluster, REQUEST_MS, (api) => deleteCondition(api, name)));
  return outcome instanceof KubeError ? outcome : undefined;
}

/** A machine without credentials, or that is no node of the cluster, has nothing there to remove. */
function isNoCluster({ kind }: KubeError): boolean {
  return kind === "unusable" || kind === "not-found";
}
