import { type Case, ID, ID2, lines, UID } from "./case.ts";

const lock = `failed to reserve sandbox name "web-0_shop_${UID}_1": name "web-0_shop_${UID}_1" is reserved for "${ID}"`;
const ctrLock = `failed to reserve container name "app_web-0_shop_${UID}_3": name "app_web-0_shop_${UID}_3" is reserved for "${ID}"`;
const esc = (text: string) => text.replaceAll('"', '\\"');

export const creationBlocked: readonly Case[] = [
  ...lines(
    "sandbox-name-held-by-inflight-run",
    [
      lock,
      `Warning  FailedCreatePodSandBox  2m (x26 over 7m)  kubelet  Failed to create pod sandbox: rpc error: code = Unknown desc = ${lock}`,
      `Nov 15 03:22:07 node1 k3s[811]: E1115 03:22:07.101010     811 kuberuntime_sandbox.go:72] "Failed to create sandbox for pod" err="rpc error: code = Unknown desc = ${esc(lock)}" pod="shop/web-0"`,
      `time="2026-11-15T03:22:07Z" level=error msg="RunPodSandbox for &PodSandboxMetadata{Name:web-0,Uid:${UID},Namespace:shop,Attempt:1,} failed, error" error="${esc(lock)}"`,
      `{"error":"${esc(lock)}","level":"error","msg":"RunPodSandbox for \\u0026PodSandboxMetadata{Name:web-0,Uid:${UID},Namespace:shop,Attempt:1,} failed, error","time":"2026-11-15T03:22:07Z"}`,
      'failed to reserve sandbox name "xxxx": name "xxx" is reserved for "7c1f0e…"',
      'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to reserve sandbox name "<pod>_<ns>_<uid>_0" is reserved for "abc..."',
      `err="rpc error: code = Unknown desc = failed to reserve sandbox name \\"web-0_shop_${UID}_1\\": name>`,
      "failed to reserve sandbox name web-0_shop_3f8e_1: name web-0_shop_3f8e_1 is reserved for 7c1f0e5ab2d9",
      `3m  Warning  FailedCreatePodSandBox  pod/web-0  Failed create pod sandbox: rpc error: code = Unknown desc = ${lock}`,
      `I! [agent] \u001b[31mFailed to reserve sandbox name \u001b[0m"web-0_shop_${UID}_1"`,
    ],
    ["clock-step-sandbox-attempt-reuse", "kernel-netns-hang", "evented-pleg-stale-status"],
  ),
  ...lines("sandbox-name-held-by-inflight-run", [
    `… name "web-0_shop_${UID}_1" is reserved for "${ID}"`,
    "Warning  FailedCreatePodSandBox  4m12s  kubelet  Failed to create pod sandbox: rpc error: code = DeadlineExceeded desc = context deadline exceeded",
    'E1115 03:26:07.5 811 remote_runtime.go:193] "RunPodSandbox from runtime service failed" err="rpc error: code = DeadlineExceeded desc = context deadline exceeded"',
    "Nov 15 03:26:07 edge kubelet[990]: E1115 03:26:07.178685     990 remote_runtime.go:109] RunPodSandbox from runtime service failed: rpc error: code = DeadlineExceeded desc = context deadline exceeded",
    `E1115 03:26:07.2 811 kuberuntime_sandbox.go:68] CreatePodSandbox for pod "web-0_shop(${UID})" failed: rpc error: code = DeadlineExceeded desc = context deadline exceeded`,
    "Failed create pod sandbox: rpc error: code = Unavailable desc = stream terminated by RST_STREAM with error code: CANCEL",
    `level=error msg="RunPodSandbox for &PodSandboxMetadata{Name:web-0,Uid:${UID},Namespace:shop,Attempt:0,} failed, error" error="failed to start sandbox container task \\"${ID}\\": context canceled: unknown"`,
    `E1115 pod_workers.go:1298] "Error syncing pod, skipping" err="failed to \\"CreatePodSandbox\\" for \\"web-0_shop(${UID})\\" with CreatePodSandboxError: \\"Failed to create sandbox for pod \\\\\\"web-0_shop(${UID})\\\\\\": rpc error: code = DeadlineExceeded desc = context deadline exceeded\\""`,
    "FATA[0240] run pod sandbox: rpc error: code = DeadlineExceeded desc = context deadline exceeded",
    `failed to setup network for sandbox "${ID}": plugin type="flannel" failed (add): netplugin failed with no error message: signal: killed`,
  ]),
  ...lines(
    "container-name-held-by-slow-create",
    [
      ctrLock,
      `  Warning  Failed  3m (x9 over 6m)  kubelet  Error: ${ctrLock}`,
      `failed to reserve container name "app_web-0_shop_${UID}_3"; check if another CreateContainer request is in progress: name "app_web-0_shop_${UID}_3" is reserved for "${ID}"`,
      `time="2026-11-15T03:22:07Z" level=error msg="CreateContainer within sandbox \\"${ID2}\\" for &ContainerMetadata{Name:app,Attempt:3,} failed" error="${esc(ctrLock)}"`,
      `E1115 03:22:07 811 pod_workers.go:1324] "Error syncing pod, skipping" err="failed to \\"StartContainer\\" for \\"app\\" with CreateContainerError: \\"${ctrLock.replaceAll('"', '\\\\\\"')}\\"" pod="shop/web-0"`,
      'Error: failed to reserve container name "xxxx": name "xxx" is reserved for "yyy"',
      "spec.containers{app}  Warning  Failed  failed to reserve container name <name>; check if another CreateContainer request is in progress:",
      'containerd[1936]: level=error msg="CreateContainer within sandbox \\"a79c\\" failed, err=failed to reserve container name app": name app" is reserved for "d6fc"',
    ],
    ["clock-step-container-restartcount", "container-create-stat-hang"],
  ),
  ...lines("container-name-held-by-slow-create", [`name "app_web-0_shop_${UID}_3" is reserved for "${ID}"`]),
  ...lines("failed-rollback-unknown-sandbox", [
    `level=error msg="encountered an error cleaning up failed sandbox \\"${ID}\\", marking sandbox state as SANDBOX_UNKNOWN" error="failed to delete task: please retry"`,
  ]),
  ...lines("container-invisible-after-enospc-restart", [
    `level=error msg="Failed to load container \\"${ID}\\"" error="failed to checkpoint status to \\"/var/lib/containerd/io.containerd.grpc.v1.cri/containers/${ID}/status\\": open /var/lib/containerd/.tmp-status: no space left on device"`,
    `containerd[902]: time="2026-11-15T03:22:07Z" level=error msg="Failed to load container \\"${ID}\\"" error="write: no space left on device"`,
    'failed to checkpoint status to "/var/lib/containerd/…',
    `{"level":"error","msg":"Failed to load sandbox \\"${ID}\\"","error":"mkdir: no space left on device"}`,
  ]),
  ...lines("kernel-netns-hang", [
    "[60246.744069] unregister_netdevice: waiting for lo to become free. Usage count = 1",
    "Nov 15 03:22:07 node1 kernel: unregister_netdevice: waiting for eth0 to become free. Usage count = 3",
    "kernel:unregister_netdevice: waiting for vethd1f2 to become free. Usage count = 2",
    "Message from syslogd@node1: kernel:unregister_netdevice: waiting for lo to become free",
    "[<0>] copy_net_ns+0x12b/0x2b0",
    "[73080.860251]  [<ffffffff8161f021>] copy_net_ns+0x71/0x130",
    "[<0>] cleanup_net+0x1f4/0x3a0",
    "INFO: task containerd:2174 blocked for more than 120 seconds.",
    "[ 3720.7] INFO: task runc:[1:CHILD]:8812 blocked for more than 241 seconds.",
  ]),
  ...lines("container-create-stat-hang", [
    `failed to generate container "${ID}" spec: failed to generate spec: failed to stat "/var/lib/kubelet/pods/${UID}/volumes/kubernetes.io~csi/pvc-1/mount": stat /var/lib/kubelet/pods/x: stale NFS file handle`,
    "level=error msg='CreateContainer within sandbox failed, err=failed to generate container, spec: failed to generate spec: failed to stat /data/containerd/pods/x/mount errno=512",
    'Error: failed to generate spec: failed to stat "/mnt/cifs/share": stat /mnt/cifs/share: host is down',
    'failed to generate spec: failed to stat "/srv/…',
  ]),
  ...lines("zero-createdat-record", [
    '"createdAt": "-6795364578871345152",',
    "7c1f0e5ab2d94       272 years ago       NotReady            web-0               shop                0                   (default)",
    "CreatedAt time will be 269 years ago if create cri network failed",
    "createdAt=-6795364578871345152 state=SANDBOX_NOTREADY",
  ]),
];
