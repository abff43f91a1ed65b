import { type Case, ID, lines, UID } from "./case.ts";

/** The wrappers of the same cause. */
export const frames: Readonly<Record<string, (cause: string) => string>> = {
  containerdEvent: (cause) =>
    `Warning  FailedKillPod   43s (x229 over 49m)  kubelet  error killing pod: failed to "KillPodSandbox" for "${UID}" with KillPodSandboxError: "rpc error: code = Unknown desc = failed to destroy network for sandbox \\"${ID}\\": ${cause.replaceAll('"', '\\"')}"`,
  crio: (cause) =>
    `failed to destroy network for pod sandbox k8s_web-0_shop_${UID}_0(${ID}): error removing pod shop_web-0 from CNI network "net1": ${cause}`,
  crioWithoutNetns: (cause) =>
    `failed to destroy network for pod sandbox k8s_web-0_shop_${UID}_0(${ID}): error removing pod shop_web-0 from CNI network "net1": ${cause}: stat netns path "": stat : no such file or directory`,
  dockershim: (cause) => `networkPlugin cni failed to teardown pod "web-0_shop" network: ${cause}`,
  crictl: (cause) =>
    `removing the pod sandbox "7c1f0e5ab2d94": rpc error: code = Unknown desc = failed to forcibly stop sandbox "${ID}": failed to destroy network for sandbox "${ID}": ${cause}`,
  add: (cause) =>
    `Warning  FailedCreatePodSandBox  33s  kubelet  Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "${ID}": ${cause.replace("(delete)", "(add)")}`,
  bare: (cause) => cause,
};

/** Without the one of ADD: there the same words have another cause. */
export const removalFrames = Object.keys(frames).filter((name) => name !== "add");

function framed(expect: string, causes: readonly string[], names = Object.keys(frames)): readonly Case[] {
  return lines(
    expect,
    causes.flatMap((cause) => names.map((name) => frames[name]?.(cause) ?? cause)),
  );
}

export const removalFails: readonly Case[] = [
  ...framed("libcni-result-cache-corrupt", [
    'failed to get network "cbr0" cached result: decoding version from network config: unexpected end of JSON input',
  ]),
  ...lines("libcni-result-cache-corrupt", [
    "decoding version from network config: unexpected end of JSON input",
    'failed to get network "aws-cni" cached result: decoding version from ne…',
    'StopPodSandbox failed: failed to get network "podman" cached result: failed to unmarshal cached network "podman" config: invalid character \'\\x00\' looking for beginning of value',
    `-rw-------. 1 root root    0 Feb 24 04:43 aws-cni-${ID}-eth0`,
    `276776240 -rw------- 1 root root    0 Nov 27 23:16 generic-veth-${ID}-eth1`,
  ]),
  ...framed("multus-cache-corrupt", ["Multus: failed to load netconf: unexpected end of JSON input"], removalFrames),
  ...lines("multus-cache-corrupt", [
    `Error deleting kube-system_harbor-x/${ID} from network multus/multus-cni-network: Multus: failed to load netconf: unexpected end of JSON input`,
    "2026-11-15T03:22:07Z [error] Multus: failed to get the cached delegates file: <nil>, cannot properly delete",
    "Multus: [shop/web-0]: failed to load netconf: invalid character 'x' looking for beginning of value",
  ]),
  ...framed("multus-cache-consumed-rebuilt-config", [
    'plugin type="multus" name="multus-cni-network" failed (delete): DelegateDel: error invoking ConflistDel - "net-a": conflistDel: error in getting result from DelNetworkList: specify either "device", "hwaddr", "kernelpath" or "pciBusID"',
  ]),
  ...lines("multus-cache-consumed-rebuilt-config", [
    "delegateDel: error invoking ConflistDel - \"k8s-pod-network\": conflistDel: error converting the raw bytes into a conflist: error parsing configuration list: no 'plugins' key",
    `networkPlugin cni failed to teardown pod "web-0_shop" network: Multus: [shop/web-0]: error reading the delegates: open /var/lib/cni/multus/${ID}: no such file or directory`,
    'failed (delete): delegateDel: error invoking DelegateDel - "sriov": error in getting result from DelNetwork: LoadConf(): VF pci addr is required',
    'Multus: Err in  reading the delegates: failed to read container data in the path("/var/lib/cni/multus/7c1f"): open: no such file or directory',
  ]),
  ...framed(
    "multus-lossy-conflist",
    [
      'plugin type="kube-ovn" failed (delete): Invalid Configuration; server_socket is required in cni.conf, &{NetConf:{CNIVersion:0.3.1 Name:kube-ovn}}',
      'plugin type="calico" failed (delete): invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable',
    ],
    removalFrames,
  ),
  ...lines("multus-lossy-conflist", [
    '[error] conflistDel: error in getting result from DelNetworkList: plugin type="kube-ovn" failed (delete): Invalid Configuration; server_socket is required in cni.conf, &{…',
  ]),
  ...framed("multus-daemon-down-or-wedged", [
    'plugin type="multus-shim" name="multus-cni-network" failed (delete): CmdAdd (shim): timed out waiting for the condition',
  ]),
  ...lines("multus-daemon-down-or-wedged", [
    'CheckAPIReadyNow: Daemon not reachable over socketfile: Get "http://dummy/healthz": dial unix /host/run/multus/multus.sock: connect: connection refused',
    "2024-11-25T16:44:01Z [error] failed to sync pod informer cache",
    "cp: cannot create regular file '/host/opt/cni/bin/multus-shim': Text file busy",
    "kernel: Memory cgroup out of memory: Killed process 4366 (multus-daemon) total-vm:1523244kB, anon-rss:51000kB",
    'plugin type="multus-shim" failed (add): CmdAdd (shim): failed to send CNI request: Post "http://dummy/cni": dial unix /run/multus/multus.sock: connect: no such file or directory',
  ]),
  ...framed("cni-not-initialized", ["cni plugin not initialized"]),
  ...lines("cni-not-initialized", [
    'E0923 19:22:45.575181   20183 kubelet.go:2874] "Container runtime network not ready" networkReady="NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"',
    'level=error msg="failed to reload cni configuration after receiving fs change event(WRITE /etc/cni/net.d/10-x.conflist)" error="cni config load failed"',
    'level=fatal msg="Failed to run CRI service" error="stream server error: cni network conf monitor error: cni conf dir is removed, stop watching"',
    "network plugin is not ready: cni config uninitialized",
    "W1115 cni.go:237] Unable to update cni config: no networks found in /etc/cni/net.d",
    "runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: no CNI configuration file in /etc/kubernetes/cni/net.d/. Has your network provider started?",
    '"lastCNILoadStatus": "cni config load failed: no network config found in /etc/cni/net.d: cni plugin not initialized: failed to load cni config"',
  ]),
  ...framed("chained-plugin-binary-missing", [
    'plugin type="istio-cni" name="istio-cni" failed (delete): failed to find plugin "istio-cni" in path [/opt/cni/bin]',
  ]),
  ...lines("chained-plugin-binary-missing", [
    'Dec 04 22:57:51 u kubelet[4344]: E1204 22:57:51.475520    4344 cni.go:319] Error deleting network: failed to find plugin "portmap" in path [/opt/flannel/bin /opt/cni/bin]',
    'delegateDel: error invoking DelegateDel - "sriov": error in getting result from DelNetwork: failed to find plugin "sriov" in path [/opt/cni/bin /opt/cni/bin]',
    'error removing pod "web" from CNI network \\"cbr0\\": plugin type=\\"istio-cni\\" name=\\"istio-cni\\" failed (delete): failed to find plugi',
    'plugin type="weave-net" name="weave" failed (delete): netplugin failed with no error message: fork/exec /opt/cni/bin/weave>',
    'plugin type="aws-cni" failed (add): netplugin failed with no error message: fork/exec /opt/cni/bin/aws-cni: no such file or directory',
  ]),
  ...framed("calico-unauthorized", [
    'plugin type="calico" failed (delete): error getting ClusterInformation: connection is unauthorized: Unauthorized',
  ]),
  ...lines("calico-unauthorized", [
    'NetworkPlugin cni failed to set up pod "kube-dns-1_kube-system" network: the server has asked for the client to provide credentials (get pods kube-dns-1)',
    "Multus: [shop/web-0]: error getting pod: Unauthorized",
  ]),
  ...framed("cni-del-needs-apiserver", [
    'plugin type="calico" failed (delete): error getting ClusterInformation: Get "https://10.96.0.1:443/apis/crd.projectcalico.org/v1/clusterinformations/default": dial tcp 10.96.0.1:443: i/o timeout',
    'plugin type="calico" failed (delete): error getting ClusterInformation: an error on the server ("") has prevented the request from succeeding',
  ]),
  ...lines("cni-del-needs-apiserver", [
    '2026-11-15T03:22:07Z [error] Multus: [shop/web-0/3f8e6c1a]: error getting pod: Get "https://[10.43.0.1]:443/api/v1/namespaces/shop/pods/web-0?timeout=1m0s": Service Unavailable',
    `Multus: [shop/web-0]: error waiting for pod: Get "https://10.43.0.1:443/api/v1/namespaces/shop/pods/web-0": dial tcp 10.43.0.1:443: connect: connection refused`,
    'plugin type="kube-router" failed (delete): Get "https://10.96.0.1:443/api/v1/nodes/n1": dial tcp 10.96.0.1:443: connect: no route to host',
    `FATA[0010] stopping the pod sandbox "5dc6" failed: rpc error: code = Unknown desc = failed to destroy network for sandbox "${ID}": dial tcp 10.10.25.230:4001: getsockopt: connection refused`,
    'NetworkPlugin cni failed to teardown pod "web-0_shop" network: client: etcd cluster is unavailable or misconfigured; error #0: EOF',
    'networkPlugin cni failed to teardown pod "web-0_shop" network: Get "https://10.3.0.1:443/api": net/http: TLS handshake timeout',
  ]),
  ...framed("calico-nodename-missing", [
    'plugin type="calico" failed (delete): stat /var/lib/calico/nodename: no such file or directory: check that the calico/node container is running and has mounted /var/lib/calico/',
  ]),
  ...lines("calico-nodename-missing", [
    "2022-07-01 09:31:06.580 [ERROR][4035368] plugin.go 518: Final result of CNI DEL was an error. error=stat /var/lib/calico/nodename: no such file or directory: check that the calico/node container is running",
  ]),
  ...framed("cilium-agent-down", [
    'unable to connect to Cilium daemon: failed to create cilium agent client after 30.000000 seconds timeout: Get "http:///var/run/cilium/cilium.sock/v1/config": dial unix /var/run/cilium/cilium.sock: connect: no such file or directory\\nIs the agent running?',
    'plugin type="cilium-cni" failed (delete): failed to acquire deletion queue: failed to lock /var/run/cilium/deleteQueue/lockfile',
  ]),
  ...lines("cilium-agent-down", [
    'plugin type="cilium-cni" failed (delete): deletion queue directory /var/run/cilium/deleteQueue has too many entries; aborting',
    'NetworkPlugin cni failed to teardown pod "x_kube-system" network: unable to connect to Cilium daemon: Failed to create cilium agent client after 30.000000 seconds timeout: %!!(MISSING)s(<nil>)]',
  ]),
  ...framed(
    "cilium-empty-netns",
    [
      'plugin type="cilium-cni" failed (delete): opening netns pinned at : open : no such file or directory: stat netns path "": stat : no such file or directory',
    ],
    removalFrames,
  ),
];
