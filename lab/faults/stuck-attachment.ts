import { existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { PodRef } from "../../src/snapshot/ids.ts";
import type { LabNode } from "../node.ts";
import { apiHas, apiKnows, objectFile } from "../stub-api.ts";

export const ATTACHER = "driver.lab.example";
const VOLUME = "pvc-lab";
const FINALIZER = "external-attacher/driver-lab-example";
const POLL_MS = 200;

export interface StuckAttachment {
  readonly name: string;
  readonly address: string;
  readonly volume: string;
}

/** A pod of this node has waited for a quarter of an hour for a volume to be attached. */
export async function stuckAttachment(
  node: LabNode,
  pod: PodRef,
  finalizers: readonly string[] = [FINALIZER],
): Promise<StuckAttachment> {
  const name = "csi-lab";
  const address = `/apis/storage.k8s.io/v1/volumeattachments/${name}`;
  await apiKnows(node, pod, {
    spec: { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }] },
    status: { phase: "Pending" },
  });
  await apiHas(node, `/api/v1/persistentvolumes/${VOLUME}`, {
    metadata: { name: VOLUME, uid: "volume" },
    spec: { claimRef: { namespace: pod.namespace, name: "data" }, csi: { driver: ATTACHER, volumeHandle: "vol-1" } },
  });
  await apiHas(node, address, attachment(node, { uid: "first", finalizers, ageMs: 15 * 60_000 }));
  return { name, address, volume: VOLUME };
}

interface AttachmentParts {
  readonly uid: string;
  readonly finalizers: readonly string[];
  readonly ageMs: number;
  readonly attached?: boolean;
  readonly deletedMs?: number;
}

function attachment(node: LabNode, { uid, finalizers, ageMs, attached = false, deletedMs }: AttachmentParts): object {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    metadata: {
      name: "csi-lab",
      uid,
      resourceVersion: "7",
      creationTimestamp: new Date(Date.now() - ageMs).toISOString(),
      finalizers,
      ...(deletedMs === undefined ? {} : { deletionTimestamp: new Date(Date.now() - deletedMs).toISOString() }),
    },
    spec: { attacher: ATTACHER, nodeName: node.hostname, source: { persistentVolumeName: VOLUME } },
    status: attached
      ? { attached }
      : { attached, attachError: { message: "the storage does not answer", time: new Date().toISOString() } },
  };
}

/** The volume is attached to this node, and its deletion was requested a quarter of an hour ago. */
export async function undetachedVolume(node: LabNode): Promise<void> {
  const parts = { uid: "first", finalizers: [FINALIZER], ageMs: 60 * 60_000, attached: true, deletedMs: 15 * 60_000 };
  await apiHas(node, "/apis/storage.k8s.io/v1/volumeattachments/csi-lab", attachment(node, parts));
}

/**
 * An attacher that renews its lease, and releases deleted attachments; the cluster then creates the attachment again,
 * and the next attempt succeeds or fails like the first.
 */
export async function runAttacher(
  node: LabNode,
  { address }: StuckAttachment,
  stop: AbortSignal,
  nextTry: "attached" | "fails" = "attached",
): Promise<void> {
  const name = "external-attacher-leader-driver-lab-example";
  while (!stop.aborted) {
    await apiHas(node, `/apis/coordination.k8s.io/v1/namespaces/storage/leases/${name}`, {
      metadata: { name, namespace: "storage" },
      spec: { holderIdentity: "controller-0", leaseDurationSeconds: 15, renewTime: new Date().toISOString() },
    });
    const file = objectFile(node, address);
    if (existsSync(file) && readFileSync(file, "utf8").includes("deletionTimestamp")) {
      await apiHas(
        node,
        address,
        attachment(node, { uid: "second", finalizers: [FINALIZER], ageMs: 0, attached: nextTry === "attached" }),
      );
    }
    await sleep(POLL_MS);
  }
}
