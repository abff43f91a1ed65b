import { type Case, lines, UID } from "./case.ts";

export const volumes: readonly Case[] = [
  ...lines("volume-attachment-stuck", [
    'AttachVolume.Attach failed for volume "pvc-9" : rpc error: code = Internal desc = [ControllerPublishVolume] failed to attach volume: volume 8fd1 status must be available, but the current status is attaching (HTTP 400)',
    'AttachVolume.Attach failed for volume "pvc-2" : rpc error: code = Internal desc = Failed to attach disk: "8fd1" with node: "w1" err The resource \'volume\' is in use.',
    '{"level":"error","caller":"vanilla/controller.go:1","msg":"failed to detach disk: \\"8fd1\\" from node: \\"w1\\" err failed to detach cns volume: \\"8fd1\\" from node vm: VirtualMachine:vm-1"}',
    'GRPC error: rpc error: code = Internal desc = Could not attach volume "vol-1" to node "i-1": attachment of disk "vol-1" failed, expected device to be attached but was attaching',
    'Warning  FailedAttachVolume  7s (x9 over 21m)  attachdetach-controller  AttachVolume.Attach failed for volume "pvc-4b1d" : timed out waiting for external-attacher of rook-ceph.rbd.csi.ceph.com CSI driver to attach volume 0001-0009-rook-ceph-0000000000000002-77',
    'E1115 03:22:07.1 1 nestedpendingoperations.go:348] Operation for "{volumeName:kubernetes.io/csi/driver.longhorn.io^pvc-4b1d podName: nodeName:}" failed. Error: AttachVolume.Attach failed for volume "pvc-4b1d" (UniqueName: "kubernetes.io/csi/driver.longhorn.io^pvc-4b1d") from node "n1" : timed out waiting for external-attacher of driver.longhorn.io CSI driver to attach volume pvc-4b1d',
    'Warning  FailedAttachVolume  2m  attachdetach-controller  AttachVolume.Attach failed for volume "pvc-4b1d" : volume attachment is being deleted',
    'AttachVolume.Attach failed for volume "pvc-4b1d" : attachment timeout for volume vol-0d5c3a9be1',
    'Warning  FailedAttachVolume  3m (x6 over 14m)  attachdetach-controller  AttachVolume.Attach failed for volume "pvc-4b1d" : rpc error: code = DeadlineExceeded desc = context deadline exceeded',
    'Warning  FailedAttachVolume  15s  attachdetach-controller  Multi-Attach error for volume "pvc-4b1d" Volume is already exclusively attached to one node and can\'t be attached to another',
    'Warning  FailedAttachVolume  15s  attachdetach-controller  Multi-Attach error for volume "pvc-4b1d" Volume is already used by pod(s) web-0',
    'AttachVolume.Attach failed for volume "pvc-4b1d" : rpc error: code = FailedPrecondition desc = volume pvc-4b1d is already attached to node n2',
    'AttachVolume.Attach failed for volume "pvc-4b1d" : rpc error: code = Internal desc = could not attach volume "vol-0d5c" to node "i-7": VolumeInUse: vol-0d5c is already attached to an instance',
    'AttachVolume.Attach failed for volume "pvc-4b1d" : rpc error: code = Unknown desc = compute.VirtualMachinesClient#Update: StatusCode=409 -- Original Error: Code="AttachDiskWhileBeingDetached"',
    'DetachVolume.Detach failed for volume "pvc-4b1d" : rpc error: code = Internal desc = failed to detach volume',
    'attacher.DetachVolume started: triggering force detach, volume "pvc-4b1d" exceeded maxWaitForUnmountDuration on node "n2"',
  ]),
  ...lines("csi-operation-in-flight", [
    'Operation for "{volumeName:kubernetes.io/csi/rbd^0001 podName: nodeName:}" failed. Error: MountVolume.MountDevice failed for volume "pvc-4b1d" : rpc error: code = Aborted desc = an operation with the given Volume ID 0001-0009-rook-ceph-77 already exists',
    "E1115 03:22:07.1 811 utils.go:245] ID: 88217 Req-ID: 0001 GRPC error: rpc error: code = Aborted desc = an operation with the given Volume ID 0001-0011 already exists",
    'MountVolume.SetUp failed for volume "pvc-4b1d" : rpc error: code = Aborted desc = operation on volume vol-7 is already in progress',
  ]),
  ...lines("volume-teardown-busy", [
    `nestedpendingoperations.go:348] Operation for "{volumeName:kubernetes.io/configmap/${UID}-conf podName:${UID} nodeName:}" failed. Error: UnmountVolume.TearDown failed for volume "conf" (UniqueName: "kubernetes.io/configmap/${UID}-conf") pod "${UID}" (UID: "${UID}") : unlinkat /var/lib/kubelet/pods/${UID}/volumes/kubernetes.io~configmap/conf: device or resource busy`,
    `UnmountVolume.TearDown failed for volume "data" : unmount failed: exit status 32 Unmounting arguments: /var/lib/kubelet/pods/${UID}/volumes/kubernetes.io~nfs/data Output: umount.nfs4: /var/lib/kubelet/pods/${UID}/volumes/kubernetes.io~nfs/data: device is busy`,
    `Error: error cleaning subPath mounts for volume "share" (UniqueName: "kubernetes.io/csi/nfs.csi.k8s.io^nas") pod "${UID}": error reading /var/lib/kubelet/pods/${UID}/volume-subpaths/share/web: lstat: stale NFS file handle`,
    `UnmountVolume.NewUnmounter failed for volume "pvc-4b1d" : kubernetes.io/csi: unmounter failed to load volume data file [/var/lib/kubelet/pods/${UID}/volumes/kubernetes.io~csi/pvc-4b1d/mount]: kubernetes.io/csi: failed to open volume data file [/var/lib/kubelet/pods/${UID}/volumes/kubernetes.io~csi/pvc-4b1d/vol_data.json]: open: no such file or directory`,
    'UnmountDevice failed for volume "pvc-4b1d" : the device mount path "/var/lib/kubelet/plugins/kubernetes.io/csi/pv/pvc-4b1d/globalmount" is still mounted by other references [/var/lib/kubelet/x]',
    `umount: /var/lib/kubelet/pods/${UID}/volumes/kubernetes.io~empty-dir/cache: target is busy.`,
  ]),
  ...lines("orphaned-volumes-directory", [
    `kubelet_volumes.go:263] "There were many similar errors. Turn up verbosity to see them." err="orphaned pod \\"${UID}\\" found, but failed to rmdir() volume at path /var/lib/kubelet/pods/${UID}/volumes/kubernetes.io~csi/pvc-4b1d: directory not empty" numErrs=14`,
    `orphaned pod "${UID}" found, but volume paths are still present on disk : There were a total of 2 errors similar to this. Turn up verbosity to see them.`,
    `"Orphaned pod found, but volumes are not cleaned up" podUID="${UID}" path="/var/lib/kubelet/pods/${UID}/volumes"`,
  ]),
];
