import type { LabNode } from "../../lab/node.ts";
import { podRef } from "../../lab/pods.ts";
import { apiHas, apiKnows } from "../../lab/stub-api.ts";

const PODS = 110;
const EVENTS = 5000;

/** As many pods of the node as kubelet allows, all of them waiting, and a cluster with many events about them. */
export async function crowd(node: LabNode): Promise<void> {
  const refs = Array.from({ length: PODS }, (_, index) => podRef({ name: `pod-${index}` }));
  for (const ref of refs) await apiKnows(node, ref, { status: { phase: "Pending" } });
  for (let index = 0; index < EVENTS; index++) await complaint(node, refs[index % PODS]?.name ?? "", index);
}

async function complaint(node: LabNode, pod: string, index: number): Promise<void> {
  const name = `${pod}.${index}`;
  await apiHas(node, `/api/v1/namespaces/default/events/${name}`, {
    metadata: { name, namespace: "default" },
    involvedObject: { kind: "Pod", namespace: "default", name: pod },
    type: "Warning",
    reason: "FailedCreatePodSandBox",
    message: `Failed to create pod sandbox: ${"rpc error: code = Unknown desc = failed to setup network ".repeat(10)}`,
    count: index,
  });
}
