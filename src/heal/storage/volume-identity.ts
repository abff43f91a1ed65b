import { type ApiAttachment, attachmentName } from "../../kube/volume-attachments.ts";
import type { ApiVolume } from "../../kube/volumes.ts";
import { sha256Of } from "../files/sha256.ts";

/** All the names that one CSI volume goes by on one node. */
export interface VolumeIdentity {
  readonly driver: string;
  readonly node: string;
  readonly attachment: string;
  /** Of its storage; more than one where its PersistentVolume was replaced by another. */
  readonly handles: readonly string[];
  /** Every PersistentVolume with that driver and handle. */
  readonly volumes: readonly ApiVolume[];
}

export type Identified =
  | { readonly kind: "identified"; readonly identity: VolumeIdentity }
  | { readonly kind: "unidentified"; readonly reason: string };

/** Which volume an attachment is about. Two PersistentVolumes may name the same storage. */
export function identify(attachment: ApiAttachment, all: readonly ApiVolume[]): Identified {
  const { attacher: driver, node, name } = attachment;
  const own = all.find((volume) => volume.name === attachment.volume);
  if (own === undefined)
    return unidentified(`the PersistentVolume ${attachment.volume ?? ""} of the attachment is gone`);
  if (own.csi === undefined) return unidentified(`the PersistentVolume ${own.name} has no CSI volume`);
  if (own.csi.driver !== driver)
    return unidentified(`the PersistentVolume ${own.name} belongs to ${own.csi.driver}, the attachment to ${driver}`);
  if (own.claim === undefined) return unidentified(`the PersistentVolume ${own.name} has no claim`);
  const { volumeHandle } = own.csi;
  const volumes = all.filter(
    ({ csi }) =>
      csi?.driver === driver &&
      (csi.volumeHandle === volumeHandle || attachmentName(csi.volumeHandle, driver, node) === name),
  );
  const handles = [...new Set(volumes.flatMap(({ csi }) => csi?.volumeHandle ?? []))];
  return { kind: "identified", identity: { driver, node, attachment: name, handles, volumes } };
}

/** As kubelet calls a volume that a pod defines in place. */
export function inlineHandle(podUid: string, volumeName: string): string {
  return `csi-${sha256Of(`${podUid}${volumeName}`)}`;
}

function unidentified(reason: string): Identified {
  return { kind: "unidentified", reason };
}
