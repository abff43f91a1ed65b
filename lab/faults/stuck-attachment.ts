import type { PodRef } from "../../src/node/types/ids.ts";
import type { LabNode } from "../node.ts";
import { apiHas, apiKnows } from "../stub-api.ts";

export const ATTACHER = "driver.lab.example";
const VOLUME = "pvc-lab";
const NAME = "csi-lab";
const ADDRESS = `/apis/storage.k8s.io/v1/volumeattachments/${NAME}`;

export interface StuckAttachment {
  readonly name: string;
  readonly address: string;
}

/** A pod of this node has waited for a quarter of an hour for a volume to be attached. */
export async function stuckAttachment(node: LabNode, pod: PodRef): Promise<StuckAttachment> {
  await apiKnows(node, pod, {
    spec: { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }] },
    status: { phase: "Pending" },
  });
  await apiHas(node, `/api/v1/persistentvolumes/${VOLUME}`, {
    metadata: { name: VOLUME, uid: "volume" },
    spec: { claimRef: { namespace: pod.namespace, name: "data" }, csi: { driver: ATTACHER, volumeHandle: "vol-1" } },
  });
  await apiHas(node, ADDRESS, attachment(node, { ageMs: 15 * 60_000 }));
  return { name: NAME, address: ADDRESS };
}

interface AttachmentParts {
  readonly ageMs: number;
  readonly attached?: boolean;
  readonly deletedMs?: number;
}

function attachment(node: LabNode, { ageMs, attached = false, deletedMs }: AttachmentParts): object {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    metadata: {
      name: NAME,
      uid: "first",
      resourceVersion: "7",
      creationTimestamp: new Date(Date.now() - ageMs).toISOString(),
      finalizers: ["external-attacher/driver-lab-example"],
      ...(deletedMs === undefined ? {} : { deletionTimestamp: new Date(Date.now() - deletedMs).toISOString() }),
    },
    spec: { attacher: ATTACHER, nodeName: node.hostname, source: { persistentVolumeName: VOLUME } },
    status: attached
      ? { attached }
      : { attached, attachError: { message: "the storage does not answer", time: new Date().toISOString() } },
  };
}

/** The volume is attached to this node, and its deletion was requested a quarter of an hour ago. */
export async function undetachedVolume(node: LabNode): Promise<StuckAttachment> {
  const parts = { ageMs: 60 * 60_000, attached: true, deletedMs: 15 * 60_000 };
  await apiHas(node, ADDRESS, attachment(node, parts));
  return { name: NAME, address: ADDRESS };
}

/** The attacher renewed its lease just now. */
export function attacherWorks(node: LabNode): Promise<void> {
  const name = "external-attacher-leader-driver-lab-example";
  return apiHas(node, `/apis/coordination.k8s.io/v1/namespaces/storage/leases/${name}`, {
    metadata: { name, namespace: "storage" },
    spec: { holderIdentity: "controller-0", leaseDurationSeconds: 15, renewTime: new Date().toISOString() },
  });
}
