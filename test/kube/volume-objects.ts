/** The API objects of one CSI volume. */
export const VOLUME = "pvc-4b1d";
export const HANDLE = "vol-0d5c";
export const DRIVER = "driver.example";
export const VOLUMES = "/api/v1/persistentvolumes";
export const LEASES = "/apis/coordination.k8s.io/v1/leases";

export interface AttachmentParts {
  readonly name?: string;
  readonly uid?: string;
  readonly volume?: string;
  readonly attacher?: string;
  readonly node?: string;
  readonly createdAt?: string;
  readonly finalizers?: readonly string[];
  readonly deletionTimestamp?: string;
  readonly status?: object | undefined;
}

export function attachmentObject(parts: AttachmentParts) {
  const { name = "csi-1", uid = "uid-1", node = "n1", createdAt = "2026-11-15T03:20:00Z", deletionTimestamp } = parts;
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    metadata: {
      name,
      uid,
      resourceVersion: "71",
      creationTimestamp: createdAt,
      finalizers: parts.finalizers ?? ["external-attacher/driver-example"],
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    spec: {
      attacher: parts.attacher ?? DRIVER,
      nodeName: node,
      source: { persistentVolumeName: parts.volume ?? VOLUME },
    },
    status: "status" in parts ? parts.status : { attached: false },
  };
}

export function volumeObject(claim: object | undefined = { namespace: "default", name: "data" }) {
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: VOLUME, uid: "pv-uid" },
    spec: { claimRef: claim, csi: { driver: DRIVER, volumeHandle: HANDLE } },
  };
}

export function leaseObject(renewTime: string) {
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: "external-attacher-leader-driver-example", namespace: "storage" },
    spec: { holderIdentity: "ctrl-1", leaseDurationSeconds: 15, renewTime },
  };
}
