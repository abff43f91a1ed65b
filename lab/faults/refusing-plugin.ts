import { sandboxId } from "../../src/node/types/ids.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { liftOrder, orderAtGate, refusal } from "../cni-gate.ts";
import type { LabNode } from "../node.ts";
import { type LabPod, type PodSpec, podRef, sandboxConfig } from "../pods.ts";
import type { Injected } from "./injected.ts";

/** The error of kube-ovn when multus passes a configuration without its own fields. */
const NO_SERVER_SOCKET = "Invalid Configuration; server_socket is required in cni.conf";
const CALL = { timeoutMs: 60_000 };

/** From now on each DEL of the pod fails, until acceptDel() is called. */
export async function refusingDel(node: LabNode, pod: LabPod, message = NO_SERVER_SOCKET): Promise<Injected> {
  await orderAtGate(node, "DEL", pod.ref.name, refusal(message));
  const did = `makes every DEL of ${pod.ref.namespace}/${pod.ref.name} fail with "${message}"`;
  return { fault: "refusing-del", did, sandboxId: pod.sandboxId };
}

export function acceptDel(node: LabNode, pod: LabPod): Promise<void> {
  return liftOrder(node, "DEL", pod.ref.name);
}

/**
 * ADD fails and so does the DEL of the rollback. containerd 1.6 keeps such a sandbox with its name, NotReady and with
 * Go's zero time; since 1.6.37 and in 2.x it completes the rollback and nothing stays: undefined.
 */
export async function failedRollback(
  node: LabNode,
  spec: PodSpec,
  message = NO_SERVER_SOCKET,
): Promise<Injected | undefined> {
  const ref = podRef(spec);
  await orderAtGate(node, "ADD", ref.name, refusal(message));
  await orderAtGate(node, "DEL", ref.name, refusal(message));
  try {
    await node.cri.runPodSandbox(sandboxConfig(spec, ref), CALL);
    throw new Error(`the ADD of ${ref.name} was ordered to fail and did not`);
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
  }
  await liftOrder(node, "ADD", ref.name);
  const listed = await node.cri.listPodSandbox({ labelSelector: { "io.kubernetes.pod.uid": ref.uid } }, CALL);
  const left = listed[0];
  if (left === undefined) return undefined;
  const did = `made ADD and roll-back of ${ref.namespace}/${ref.name} fail`;
  return { fault: "failed-rollback", did, sandboxId: sandboxId(left.id) };
}
