import { type Case, ID, ID2, lines, UID } from "./case.ts";

/** Limits of the kernel, security modules, cgroups, shims and what a crash loses in the runtime's own files. */
export const nodeLimits: readonly Case[] = [
  ...lines("inotify-instances-exhausted", [
    'time="2026-11-15T03:22:07.1Z" level=error msg="error from *cgroupsv2.Manager.EventChan" error="failed to create inotify fd: too many open files"',
    'time="2026-11-15T03:22:07.1Z" level=error msg="failed to watch oom events" error="failed to add memory.events watch: too many open files"',
    "kubelet.go:1466] Failed to start cAdvisor inotify_add_watch /sys/fs/cgroup/cpuacct,cpu: no space left on device",
    "E1115 03:22:07.1 811 manager.go:1119] Failed to create existing container: inotify_init: too many open files",
    "failed to create fsnotify watcher: too many open files",
  ]),
  ...lines("file-handles-exhausted", [
    `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to start sandbox "${ID}": failed to create containerd task: failed to start shim: open /dev/null: too many open files: unknown`,
    'level=error msg="StartContainer failed" error="failed to create containerd task: failed to start shim: start failed: fork/exec /usr/local/bin/containerd-shim-runc-v2: too many open files: unknown"',
    `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "${ID}": plugin type="bridge" failed (add): open /proc/self/ns/net: too many open files`,
    'level=error msg="accept unix /run/containerd/containerd.sock: accept4: too many open files" in pod sandbox service',
  ]),
  ...lines("memory-cgroups-exhausted", [
    `failed to ensure that the pod: ${UID} cgroups exist and are correctly applied: failed to create container for [kubepods besteffort pod${UID}] : mkdir /sys/fs/cgroup/memory/kubepods/besteffort/pod${UID}: no space left on device`,
    "OCI runtime create failed: mkdir /sys/fs/cgroup/memory/kubepods/burstable/pod7/abc: cannot allocate memory: unknown",
  ]),
  ...lines("pod-cgroup-busy", [
    `"Failed to delete cgroup paths" cgroupName=["kubepods","burstable","pod${UID}"] err="unable to destroy cgroup paths for cgroup [kubepods burstable pod${UID}] : Timed out while waiting for systemd to remove kubepods-burstable-pod3f8e6c1a.slice"`,
    `pod_workers.go:1298] "Error syncing pod, skipping" err="failed to delete cgroup paths for [kubepods besteffort pod${UID}] : unable to destroy cgroup paths for cgroup [kubepods besteffort pod${UID}]" pod="shop/web-0"`,
    `time="2026-11-15T03:22:07Z" level=warning msg="Failed to remove cgroup (will retry)" error="rmdir /sys/fs/cgroup/memory/kubepods/besteffort/pod${UID}/${ID}: device or resource busy"`,
  ]),
  ...lines("runc-signal-denied", [
    `error killing pod: [failed to "KillContainer" for "web" with KillContainerError: "rpc error: code = Unknown desc = failed to kill container \\"${ID}\\": unknown error after kill: runc did not terminate successfully: exit status 1: unable to signal init: permission denied\\n: unknown"]`,
    `"StopPodSandbox from runtime service failed" err="rpc error: code = Unknown desc = failed to stop sandbox container \\"${ID}\\" in \\"SANDBOX_READY\\" state: failed to kill sandbox container: unknown error after kill: runc did not terminate successfully: exit status 1: unable to signal init: permission denied"`,
    'audit: type=1400 audit(1745819311.037:2350): apparmor="DENIED" operation="signal" class="signal" profile="cri-containerd.apparmor.d" pid=776562 comm="runc" requested_mask="receive" denied_mask="receive" signal=kill peer="runc"',
    'failed to kill container: container_linux.go:389: signaling init process caused "permission denied": unknown',
  ]),
  ...lines("kubelet-blocked-by-orphan-container", [
    `F1115 03:22:07.1 811 kubelet.go:1383] "Failed to start ContainerManager" err="failed to build map of initial containers from runtime: no PodsandBox found with Id '${ID}'"`,
    `"No PodSandBox found for the container" podSandboxId="${ID}" containerName="web" containerId="${ID2}"`,
  ]),
  ...lines("container-status-lost", [
    `time="2026-11-15T03:22:07Z" level=warning msg="Failed to load container status for \\"${ID}\\"" error="failed to read status from \\"/var/lib/containerd/io.containerd.grpc.v1.cri/containers/${ID}/status\\": open /var/lib/containerd/io.containerd.grpc.v1.cri/containers/${ID}/status: no such file or directory"`,
    `level=warning msg="Failed to load container status for \\"${ID}\\"" error="unexpected end of JSON input"`,
    `level=error msg="Failed to load container status for \\"${ID}\\"" error="unexpected container state for created task"`,
    `failed to read status from "/var/lib/containerd/io.containerd.grpc.v1.cri/containers/${ID}/status"`,
  ]),
  ...lines("image-snapshot-missing", [
    'Failed to create pod sandbox: rpc error: code = NotFound desc = failed to create containerd container: create snapshot: missing parent "k8s.io/4/sha256:d948c1475f" bucket: not found',
    `RunPodSandbox failed: failed to create containerd container: parent snapshot sha256:${ID} does not exist: not found`,
    `Failed to create pod sandbox: rpc error: code = NotFound desc = failed to create containerd container: error unpacking image: failed to extract layer sha256:${ID}: failed to get reader from content store: content digest sha256:${ID2}: not found`,
  ]),
  ...lines("crio-storage-corrupt", [
    `Failed to create pod sandbox: rpc error: code = Unknown desc = error creating pod sandbox with name "k8s_web-0_shop_${UID}_0": layer not known`,
    `error creating pod sandbox with name "k8s_web-0_shop_${UID}_0": error creating read-write layer with ID "${ID}": Stat /var/lib/containers/storage/overlay/${ID2}: no such file or directory`,
  ]),
  ...lines("shim-lost", [
    "Error: failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to create new parent process: namespace path: lstat /proc/0/ns/ipc: no such file or directory: unknown",
    `failed to stop container "${ID}": failed to kill container: no running task found: task ${ID} not found: not found`,
    `CreateContainer within sandbox failed: sandbox container "${ID}" is not running`,
  ]),
  ...lines("shim-hangs", [
    `time="2026-11-15T03:22:07Z" level=error msg="get state for ${ID}" error="context deadline exceeded: unknown"`,
    `level=error msg="converting task to protobuf" error="context canceled: unknown" id=${ID}`,
    'level=error msg="ttrpc: received message on inactive stream" stream=1817',
  ]),
];
