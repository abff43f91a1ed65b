import { type Case, ID, ID2, lines, UID } from "./case.ts";
import { frames, removalFrames } from "./removal-fails.ts";

function framed(expect: string, causes: readonly string[], names = Object.keys(frames)): readonly Case[] {
  return lines(
    expect,
    causes.flatMap((cause) => names.map((name) => frames[name]?.(cause) ?? cause)),
  );
}

export const removalFailsMore: readonly Case[] = [
  ...framed("cni-daemon-socket-down", [
    'plugin type="kube-ovn" failed (delete): RPC failed; Post "http://dummy/api/v1/del": dial unix /run/openvswitch/kube-ovn-daemon.sock: connect: no such file or directory',
    'plugin type="aws-cni" failed (delete): del cmd: error received from DelNetwork gRPC call: rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:50051: connect: connection refused"',
  ]),
  ...lines("cni-daemon-socket-down", [
    'plugin type="antrea" failed (add): rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing dial unix /var/run/antrea/cni.sock: connect: connection refused"',
    'plugin type="ovn-k8s-cni-overlay" failed (delete): failed to send CNI request: Post "http://dummy/": dial unix /var/run/ovn-kubernetes/cni//ovn-cni-server.sock: connect: connection refused',
    "could not remove grpc wire: rpc error: code = Unavailable desc = dial tcp 127.0.0.1:51111: connect: connection refused",
    'networkPlugin cni failed to teardown pod "web-0_shop" network: Delete "http://127.0.0.1:6784/ip/7c1f": dial tcp 127.0.0.1:6784: connect: connection refused',
    'plugin type="newnet" failed (delete): dial unix /run/newnet/agent.sock: connect: connection refused',
    `{"level":"error","ts":"2026-11-15T03:22:07Z","caller":"routed-eni-cni-plugin/cni.go:240","msg":"Error received from DelNetwork gRPC call for container ${ID}: rpc error: code = Unavailable"}`,
    "dial unix /run/openvswitch/kube-ovn-daemon.sock: connect: no such file or directory",
  ]),
  ...framed(
    "del-timeout-killed",
    [
      'plugin type="calico" failed (delete): netplugin failed with no error message: signal: killed',
      "netplugin failed with no error message: context deadline exceeded",
      "Calico CNI timed out deleting device in netns /var/run/netns/cni-1b2c3d4e",
    ],
    removalFrames,
  ),
  ...lines("del-timeout-killed", [
    `failed to "KillPodSandbox" for "${UID}" with KillPodSandboxError: "rpc error: code = DeadlineExceeded desc = context deadline exceeded"`,
    `E1115 remote_runtime.go:222] "StopPodSandbox from runtime service failed" err="rpc error: code = DeadlineExceeded desc = context deadline exceeded" podSandboxID="${ID}"`,
    `stopping the pod sandbox "7c1f0e5ab2d94": rpc error: code = DeadlineExceeded desc = context deadline exceeded`,
    `Error deleting shop_web-0/${ID} from network calico/k8s: netplugin failed but error parsing its diagnostic message "": unexpected end of JSON input`,
    "netplugin failed with no error message",
    "E0725 15:44:17.276565   61508 cni.go:319] Error deleting network: context deadline exceeded",
    'NetworkPlugin cni failed to teardown pod "web-0_shop" network: context deadline exceeded',
    `E0512 kuberuntime_gc.go:177] "Failed to stop sandbox before removing" err="rpc error: code = DeadlineExceeded desc = context deadline exceeded" sandboxID="${ID}"`,
  ]),
  ...framed("device-plugin-cache-missing", [
    `error reading cached NetConf in /var/lib/cni/sriov with name ${ID}-net1`,
    "failed to del rule table 500: no such file or directory",
  ]),
  ...lines("device-plugin-cache-missing", [
    `delegateDel: error invoking DelegateDel - "ib-sriov": error in getting result from DelNetwork: error reading cached NetConf in /var/lib/cni/ib-sriov with name ${ID}-net1]`,
  ]),
  ...framed("ipam-record-missing", [
    "del cmd: failed to process delete request",
    `Error deallocating IP: Did not find reserved IP for container ${ID}`,
    "Failed to obtain OVS port for given connection: failed to find object from table Port",
  ]),
  ...framed("iptables-portmap", [
    'plugin type="portmap" failed (delete): could not teardown ipv4 dnat: running [/usr/sbin/iptables -t nat -X CNI-DN-2cbdc0366bc65971858cc --wait]: exit status 1: iptables: No chain/target/match by that name.',
    'plugin type="portmap" failed (delete): neither iptables nor ip6tables usable',
  ]),
  ...lines("iptables-portmap", [
    `failed to destroy network for sandbox "${ID}": running [/sbin/iptables -t nat -D POSTROUTING -s 10.1.0.3 -j CNI-ec7c908de84d219cb3afd915 --wait]: exit status 4: Another app is currently holding the xtables lock.`,
    `Failed to destroy network for sandbox "${ID}": Another app is currently holding the xtables lock. Perhaps you want to use the -w option?`,
    'failed to setup network for sandbox "7c1f": could not initialize iptables protocol 0: exec: "iptables": executable file not found in $PATH',
    'plugin type="portmap" failed (delete): iptables: Resource temporarily unavailable.',
    'NetworkPlugin cni failed to set up pod "n_default" network: unable to setup DNAT: running [/sbin/iptables -t nat -A CNI-HOSTPORT-DNAT -j CNI-DN-35 --wait]: exit status 1: iptables: No chain/target/match by that name.',
  ]),
  ...framed("cni-version-mismatch", [
    'incompatible CNI versions; config is "1.0.0", plugin supports ["0.1.0" "0.2.0" "0.3.0" "0.3.1" "0.4.0"]',
    'invalid version "": the version is empty',
  ]),
  ...lines("cni-version-mismatch", [
    'ERRO[2022-04-26T00:43:24.518165483Z] StopPodSandbox for "b" failed error="failed to destroy network for sandbox \\"bbc8\\": invalid version \\"\\": the version is empty"',
    'W1115 cni.go:202] Error validating CNI config &{cbr0}: [plugin flannel does not support config version ""]',
    'failed to get network "craft0" cached result: failed to convert cached result version "0.1.0" to config version "0.4.0"',
  ]),
  ...lines("netns-busy", [
    `PodSandboxStatus of sandbox "${ID}" for pod "mon-a_rook(${UID})" error: rpc error: code = Unknown desc = failed to get sandbox ip: check network namespace closed: remove netns: remove /var/run/netns/cni-3276e31b: device or resource busy`,
    "failed to check network namespace closed: remove netns: unlinkat /var/run/netns/cni-1b2c: device or resource busy",
    `failed to remove network namespace for sandbox "${ID}": failed to remove netns: unlinkat /run/netns/cni-1b2c: device or resource busy`,
    'sandbox network namespace "/var/run/netns/cni-1b2c" is not fully closed',
    "failed to unmount NS: at /var/run/netns/cni-1b2c: invalid argument",
    "rm: cannot remove '/var/run/netns/cni-1b2c': Device or resource busy",
  ]),
  ...lines("container-unkillable", [
    `level=error msg="StopContainer for \\"${ID}\\" failed" error="rpc error: code = DeadlineExceeded desc = an error occurs during waiting for container \\"${ID}\\" to be killed: wait container \\"${ID}\\": context deadline exceeded"`,
    `{"error":"rpc error: code = Canceled desc = an error occurs during waiting for container \\"${ID}\\" to be killed: wait container \\"${ID}\\": context canceled","level":"error"}`,
    `failed to stop sandbox container "${ID}" in "SANDBOX_READY" state: wait sandbox container "${ID}": context canceled`,
    `E1120 remote_runtime.go:366] "StopContainer from runtime service failed" err="rpc error: code = DeadlineExceeded desc = context deadline exceeded" containerID="${ID}"`,
    'failed to kill container "7c1f": context deadline exceeded: unknown',
    "Error response from daemon: cannot stop container: 7c1f: tried to kill container, but did not receive an exit event",
    `[failed to "KillContainer" for "app" with KillContainerError: "rpc error: code = DeadlineExceeded desc = context deadline exceeded"`,
  ]),
  ...lines("shim-lost", [
    `failed to stop infra container for pod sandbox ${ID}: failed to stop container k8s_POD_c_ns_${UID}_0: ttrpc: closed: unknown`,
    `StopPodSandbox "${ID}" failed: failed to get sandbox container: container not found`,
    "runc did not terminate sucessfully: exit status 1: container does not exist",
    `failed to delete container k8s_app_web-0_shop_${UID}_0 in pod sandbox ${ID}: \`/usr/bin/crun delete --force ${ID}\` failed: error opening file \`/run/crun/${ID}/status\`: No such file or directory`,
    `failed to query controller status: rpc error: code = Unavailable`,
    `failed to stop sandbox "${ID2}": dial unix /run/containerd/containerd-shim/abc.sock: connect: connection refused`,
  ]),
  ...framed(
    "delegate-scratch-corrupt",
    ['plugin type="flannel" failed (delete): failed to parse netconf: unexpected end of JSON input'],
    removalFrames,
  ),
  ...lines("delegate-scratch-corrupt", [
    "conflistDel: error in getting result from DelNetworkList: failed to parse netconf: unexpected end of JSON input",
    `plugin type="flannel" failed (delete): error reading /var/lib/cni/flannel/${ID}: unexpected end of JSON input`,
  ]),
  ...lines("sandbox-files-busy", [
    `RemovePodSandbox "${ID}" failed: failed to cleanup sandbox files: [failed to unmount /run/containerd/io.containerd.grpc.v1.cri/sandboxes/${ID}/shm: device or resource busy]`,
    `failed to remove sandbox root directory "/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/${ID}": unlinkat: device or resource busy`,
    "failed to remove bundle: unlinkat /run/containerd/io.containerd.runtime.v2.task/k8s.io/7c1f/rootfs: directory not empty",
    'level=error msg="failed to delete bundle" error="unlinkat /run/containerd/io.containerd.runtime.v2.task/k8s.io/7c1f/rootfs: device or resource busy"',
    `failed to cleanup image mounts for sandbox "${ID}": device or resource busy`,
    `FATA[0000] removing the pod sandbox "${ID}" failed: rpc error: code = Unknown desc = failed to remove pod sandbox ${ID}: unlinkat /var/run/containers/storage/overlay-containers/${ID}/userdata/shm: device or resource busy`,
  ]),
  ...lines("vm-runtime-left", [
    `kata-runtime: mkdir /run/vc/sbs/${ID}: file exists`,
    `runsc: creating container: container with id ${ID} already exists`,
    `OCI runtime create failed: kata: sandbox ${ID} already exists, cannot create`,
  ]),
];
