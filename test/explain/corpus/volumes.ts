import { type Case, lines } from "./case.ts";

export const volumes: readonly Case[] = lines("volume-attachment-stuck", [
  'Warning  FailedAttachVolume  7s (x9 over 21m)  attachdetach-controller  AttachVolume.Attach failed for volume "pvc-4b1d" : timed out waiting for external-attacher of rook-ceph.rbd.csi.ceph.com CSI driver to attach volume 0001-0009-rook-ceph-0000000000000002-77',
  'E1115 03:22:07.1 1 nestedpendingoperations.go:348] Operation for "{volumeName:kubernetes.io/csi/driver.longhorn.io^pvc-4b1d podName: nodeName:}" failed. Error: AttachVolume.Attach failed for volume "pvc-4b1d" (UniqueName: "kubernetes.io/csi/driver.longhorn.io^pvc-4b1d") from node "n1" : timed out waiting for external-attacher of driver.longhorn.io CSI driver to attach volume pvc-4b1d',
  'Warning  FailedAttachVolume  2m  attachdetach-controller  AttachVolume.Attach failed for volume "pvc-4b1d" : volume attachment is being deleted',
  'AttachVolume.Attach failed for volume "pvc-4b1d" : attachment timeout for volume vol-0d5c3a9be1',
  'Warning  FailedAttachVolume  3m (x6 over 14m)  attachdetach-controller  AttachVolume.Attach failed for volume "pvc-4b1d" : rpc error: code = DeadlineExceeded desc = context deadline exceeded',
]);
