import { type Case, ID, ID2, lines, UID } from "./case.ts";

export const leaksAndRuntimes: readonly Case[] = [
  ...lines(
    "hostlocal-ip-leak-after-reboot",
    [
      `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "${ID}": failed to allocate for range 0: no IP addresses available in range set: 10.42.1.1-10.42.1.254`,
      `FailedCreatePodSandBox (17) | 59 secs ago | (combined from similar events): Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "${ID}": plugin type="flannel" failed (add): failed to delegate add: failed to allocate for range 0: no IP addresses available in range set: 10.42.1.1-10.42.1.254`,
      'NetworkPlugin cni failed to set up pod "web-0_shop" network: failed to allocate for range 0: no IP addresses available in range set: 10.42.0.1-10.42.0.254',
      'NetworkPlugin kubenet failed to set up pod "web-0_shop" network: Error adding container to network: no IP addresses available in network: kubenet',
      "cni plugin bridge failed: failed to allocate for range 0: requested IP address 10.88.0.101 is not available in range set 10.88.0.1-10.88.255.254",
      "requested IP address 172.18.24.10 is not available in range set 172.18.24.1-172.18.24.254",
    ],
    ["chained-plugin-ip-leak"],
  ),
  ...lines("hostlocal-ip-leak-after-reboot", [
    `failed to allocate for range 0: 10.55.0.7 has been allocated to ${ID}, duplicate allocation is not allowed`,
    'plugin type="bridge" failed (add): failed to allocate for range 0: no IP ad…',
  ]),
  ...lines("hostlocal-empty-ip-file", [
    "-rw-r--r-- 1 root root    0 Nov 15 03:10 10.42.0.17",
    "-rw-r--r--. 1 root root 0 Nov 15 03:10 /var/lib/cni/networks/cbr0/10.42.0.18",
  ]),
  ...lines("del-swallowed", [
    "2026-11-15T03:22:07Z [error] CmdDel (shim): CNI request failed with status 400: 'ContainerID:\"7c1f\" ERRORED: boom'",
    "CmdCheck (shim): CNI request failed with status 400",
  ]),
  ...lines("shim-leak", [
    `level=error msg="failed to handle sandbox TaskExit event &TaskExit{ContainerID:${ID},ID:${ID},Pid:264527,ExitStatus:137,}" error="failed to stop sandbox: failed to delete task: context deadline exceeded: unknown"`,
    'level=debug msg="failed to delete task" error="context deadline exceeded" id=15b0',
    'level=error msg="failed to delete shim" error="context deadline exceeded" id=7c1f',
    'level=warning msg="failed to clean up after shim disconnected" error=": context deadline exceeded" id=7c1f namespace=k8s.io',
  ]),
  ...lines("snapshot-lease-leak", [
    `failed to create lease for sandbox "${ID}": lease "${ID}": already exists`,
    'time="2026-11-15T03:22:07.1Z" level=error msg="failed to delete lease during cleanup" error="lease store is closed"',
  ]),
  ...lines("stale-hostport-rules", [
    `-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"cbr0\\" id: \\"${ID}\\"" -m multiport --dports 8080 -j CNI-DN-2cbdc0366bc65971858cc`,
  ]),
  ...lines("stale-hostport-rules", [
    'CNI-DN-8e1b7c  tcp  --  anywhere  anywhere  /* dnat name: "cilium" id: "7c1f0e5ab2d9" */ multiport dports 8126',
  ]),
  ...lines("sandbox-list-overflow", [
    '"GenericPLEG: Unable to retrieve pods" err="rpc error: code = ResourceExhausted desc = grpc: trying to send message larger than max (16784723 vs. 16777216)"',
    "remote_runtime.go:173] ListPodSandbox with filter nil from runtime service failed: rpc error: code = ResourceExhausted desc = grpc: trying to send message larger than max (8398577 vs. 8388608)",
    "FATA[0002] listing pod sandboxes: rpc error: code = ResourceExhausted desc = grpc: trying to send message larger than max (16783177 vs. 16777216)",
    "Warning ContainerGCFailed 119s (x2523 over 42h) kubelet rpc error: code = ResourceExhausted desc = grpc: trying to send message larger than max (16779959 vs. 16777216)",
    "E0515 12:02:19 remote_runtime.go:262] ListContainers with filter &ContainerFilter{} from runtime service failed: rpc error: code = ResourceExhausted desc = grpc: received message larger than max (4195017 vs. 4194304)",
    "GenericPLEG: Unable to retrieve pods: rpc error: code = Unknown desc = too much",
  ]),
  ...lines("record-leak-after-late-failure", [
    `level=error msg="RunPodSandbox for &PodSandboxMetadata{Name:web-0,Uid:${UID},Namespace:shop,Attempt:0,} failed, error" error="NRI RunPodSandbox failed: plugin rejected"`,
    "Failed to create pod sandbox: rpc error: code = Unknown desc = NRI RunPodSandbox failed: ttrpc timed out",
  ]),
  ...lines("recover-duplicate-sandbox-name", [
    `time="2026-11-15T03:22:07Z" level=fatal msg="Failed to run CRI service" error="failed to recover state: failed to reserve sandbox name \\"web-0_shop_${UID}_0\\": name \\"web-0_shop_${UID}_0\\" is reserved for \\"${ID}\\""`,
    `{"error":"failed to recover state: failed to reserve sandbox name \\"web-0_shop_${UID}_0\\": name","level":"fatal","msg":"Failed to run CRI service"}`,
    '8月 02 22:56:05 n containerd[36948]: level=fatal msg="Failed to run CRI service" error="failed to recover state: failed to reserve sandbox name xxx',
  ]),
  ...lines("recover-duplicate-container-name", [
    `level=fatal msg="Failed to run CRI service" error="failed to recover state: failed to reserve container name \\"app_web-0_shop_${UID}_0\\": name \\"app_web-0_shop_${UID}_0\\" is reserved for \\"${ID}\\""`,
  ]),
  ...lines("recover-missing-metadata", [
    `{"error":"failed to recover state: failed to get metadata for stored sandbox \\"${ID}\\": not found","level":"fatal","msg":"Failed to run CRI service","time":"2024-10-12T23:27:38Z"}`,
    `Oct 17 13:46:12 containerd[40100]: level=fatal msg="Failed to run CRI service" error="failed to recover state: failed to get metadata for stored sandbox \\"${ID2}\\": not found"`,
  ]),
  ...lines("recover-missing-metadata", [
    `level=error msg="failed to recover sandbox state" error="unable to find sandbox \\"${ID}\\": not found" sandbox=${ID}`,
  ]),
  ...lines("bolt-corruption", [
    "panic: invalid page type: 4: 10",
    "containerd[11995]: panic: freepages: failed to get all reachable pages (key[0]=(hex)34 on leaf page(5) needs to be < than key of the next element)",
    "panic: assertion failed: Page expected to be: 3393, but self identifies as 6868074383292906018",
    "panic: runtime error: slice bounds out of range [:30575] with capacity 4096 go.etcd.io/bbolt.(*node).read",
    'level=error msg="failed to load plugin" error="invalid database" path=/var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db: invalid database',
  ]),
  ...lines("cni-lock-wedge", [
    "Status from runtime service failed: rpc error: code = DeadlineExceeded desc = context deadline exceeded",
    'E1115 remote_runtime.go:604] "Status from runtime service failed" err="rpc error: code = DeadlineExceeded desc = context deadline exceeded"',
    'E1115 generic.go:205] "GenericPLEG: Unable to retrieve pods" err="rpc error: code = DeadlineExceeded desc = context deadline exceeded"',
    "Ready False Sat, 28 Sep 2019 15:05:43 +0000 KubeletNotReady container runtime is down",
    'kubelet.go:2016] "Skipping pod synchronization" err="[container runtime is down, PLEG is not healthy: pleg was last seen active 3m4s ago; threshold is 3m0s]"',
  ]),
  ...lines("crio-name-reserved", [
    `time="2025-06-04" level=warning msg="error reserving pod name k8s_coredns-1_kube-system_${UID}_0 for id ${ID}: name is reserved"`,
    `Kubelet may be retrying requests that are timing out in CRI-O due to system load: error reserving pod name k8s_web-0_shop_${UID}_1 for id ${ID}: name is reserved`,
    `Failed create pod sandbox: rpc error: code = Unknown desc = error reserving pod name k8s_web-0_shop_${UID}_0 for id ${ID}`,
    `level=info msg="Creation of sandbox k8s_web-0_shop_${UID}_0 not yet finished. Currently at stage sandbox storage creation. Waiting up to 7m59s for it to finish"`,
    `error reserving ctr name k8s_app_web-0_shop_${UID}_0 for id ${ID}: name is reserved`,
    "kubelet may be retrying requests that are timing out in CRI-O due to system load. Currently at stage container network ready: context deadline exceeded",
  ]),
  ...lines("crio-already-exists", [
    'pod sandbox with name "k8s_web-0_shop_3f8e_0" already exists',
    `conflict, name "k8s_web-0_shop_${UID}_0" already reserved for ctr "${ID}"`,
  ]),
  ...lines("stale-proc-netns", [
    'NetworkPlugin cni failed to set up pod "web-0_shop" network: failed to Statfs "/proc/12764/ns/net": no such file or directory',
    'failed to read pod IP from plugin/docker: NetworkPlugin cni failed on the status hook for pod "p1_n01": Unexpected command output nsenter: cannot open /proc/43796/ns/net: No such file or directory',
    'NetworkPlugin cni failed on the status hook for pod "kube-dns-1_kube-system": CNI failed to retrieve network namespace path: Cannot find network namespace for the terminated container "5aaa78"',
  ]),
  ...lines("docker-name-conflict", [
    `failed to create a sandbox for pod "web-0": Error response from daemon: Conflict. The container name "/k8s_POD_web-0_shop_${UID}_0" is already in use by container "${ID}". You have to remove (or rename) that container to be able to reuse that name.`,
    `CreateContainer in sandbox "${ID2}" from runtime service failed: rpc error: code = Unknown desc = Error response from daemon: Conflict. The container name "/k8s_app_web-0_shop_${UID}_2" is already in use by container "${ID}".`,
    'W1017 helpers.go:286] Unable to create pod sandbox due to conflict. Attempting to remove sandbox "0edbxxxx"',
    'E1017 helpers.go:291] Failed to remove the conflicting container "0edbxxxx": Error response from daemon: You cannot remove a running container',
    'Failed create pod sandbox: Conflict. The container name "/xxx" is already in use by container "yyy".',
  ]),
  ...lines(
    "isulad-name-conflict",
    [
      `rpc error: code = Unknown desc = Conflict. The name "k8s_POD_etcd-x_kube-system_ae0fcba533f9b951c6983487becf13f9_0" is already in use by sandbox ${ID}. You have to remove that sandbox to be able to reuse that name.`,
      "The name xxx is already in use by sandbox yyy",
    ],
    ["evented-pleg-stale-status"],
  ),
  ...lines("crio-half-removed", [
    `E1115 20:11:52.004127    1931 remote_runtime.go:224] "RemovePodSandbox from runtime service failed" err="rpc error: code = Unknown desc = failed to delete container k8s_POD_web-0_shop_${UID}_0 in pod sandbox ${ID} from index: no such id: '${ID}'" podSandboxID="${ID}"`,
    `removing the pod sandbox "7c1f0e5ab2d94": rpc error: code = Unknown desc = failed to delete container k8s_POD_web-0_shop_${UID}_0 in pod sandbox ${ID} from index: no such id: '${ID}'`,
    `failed to delete infra container ${ID} in pod sandbox ${ID} from index: no such id: '${ID}'`,
  ]),
  ...lines("second-idempotent-del", [
    `2022-09-28T15:11:47Z [error] Multus: failed to get the cached delegates file: open /var/lib/cni/multus/${ID}: no such file or directory, cannot properly delete`,
    "Multus: failed to get the cached delegates file … cannot properly delete",
  ]),
];
