import { type Case, ID, lines, UID } from "./case.ts";

const setUp = (cause: string) =>
  `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "${ID}": ${cause}`;

/** What removed add-ons, dead pods and half-done upgrades leave in the way of CNI. */
export const networks: readonly Case[] = [
  ...lines("stale-cni-conf-first", [
    setUp(
      'plugin type="multus" name="multus-cni-network" failed (add): Multus: failed to get context for the kubeconfig /etc/cni/net.d/multus.d/multus.kubeconfig: stat /etc/cni/net.d/multus.d/multus.kubeconfig: no such file or directory',
    ),
    'NetworkPlugin cni failed to set up pod "web-0_shop" network: stat /etc/cni/net.d/calico-kubeconfig: no such file or directory',
  ]),
  ...lines(
    "cilium-agent-down",
    [
      setUp(
        'plugin type="cilium-cni" failed (add): unable to connect to Cilium agent: failed to create cilium agent client after 30.000000 seconds timeout',
      ),
    ],
    ["stale-cni-conf-first"],
  ),
  ...lines("stale-host-route", [
    setUp(
      "plugin type=\"calico\" failed (add): error adding host side routes for interface: cali05ad595351c, error: route (Ifindex: 93, Dst: 10.1.2.3/32, Scope: link) already exists for an interface other than 'cali05ad595351c'",
    ),
    "Error adding network: error adding host side routes for interface: cali05ad595351c, error: failed to add route file exists",
  ]),
  ...lines("stale-bridge-address", [
    setUp(
      'plugin type="flannel" failed (add): failed to delegate add: failed to set bridge addr: "cni0" already has an IP address different from 10.244.3.1/24',
    ),
    setUp(
      'plugin type="bridge" failed (add): failed to set bridge addr: could not add IP address to "cni0": file exists',
    ),
  ]),
  ...lines("address-held-by-dead-pod", [
    setUp('plugin type="calico" name="k8s-pod-network" failed (add): Address already assigned in block'),
  ]),
  ...lines("virtual-function-busy", [
    'Multus: error in invoke Delegate add - "sriov": failed to set up pod interface "net1" from the device "enp24s0f1": failed to move vf 3 to netns: file exists',
    setUp(
      'plugin type="multus" name="multus-cni-network" failed (add): [shop/web-0:n2]: error adding container to network "n2": failed to set up pod interface "net4" from the device "enp134s0f1": error setting up interface in container namespace: "error bringing interface up in container ns: \\"device or resource busy\\""',
    ),
    'sriov: failed to set up pod interface "net1" from the device "ens1f0": device or resource busy',
  ]),
  ...lines("whereabouts-reservation-leak", [
    setUp(
      'plugin type="multus" name="multus-cni-network" failed (add): [shop/web-0:n2]: error adding container to network "n2": error at storage engine: Could not allocate IP in range: ip: 172.22.8.10 / - 172.22.8.29 / range: net.IPNet{}',
    ),
  ]),
  ...lines("ovn-port-not-ready", [
    setUp(
      `plugin type="ovn-k8s-cni-overlay" name="ovn-kubernetes" failed (add): CNI request failed with status 400: '[shop/web-0 ${ID} network default NAD default] failed to configure pod interface: timed out waiting for OVS port binding (ovn-installed) for 0a:58:0a:80:00:0c [10.128.0.12/23]'`,
    ),
    setUp(
      `plugin type="ovn-k8s-cni-overlay" name="ovn-kubernetes" failed (add): CNI request failed with status 400: '[shop/web-0 ${ID} network default NAD default] failed to get pod annotation: timed out waiting for annotations: context deadline exceeded'`,
    ),
    "failed to configure pod interface: timed out dumping br-int flow entries for sandbox: timed out waiting for the condition",
  ]),
  ...lines("multus-delegates-to-itself", [
    setUp(
      'plugin type="multus" name="multus-cni-network" failed (add): [lab/a-1:multus-cni-network]: error adding container to network "multus-cni-network": [lab/a-1:multus-cni-network]: error adding container to network "multus-cni-network": netplugin failed with no error message: signal: killed',
    ),
  ]),
  ...lines("cni-store-locked", [
    `"StopPodSandbox from runtime service failed" err="rpc error: code = Unknown desc = failed to destroy network for sandbox \\"${ID}\\": plugin type=\\"azure-vnet\\" name=\\"azure\\" failed (delete): Failed to initialize key-value store of network plugin: timed out locking store"`,
    "2026/11/15 03:22:07 [cni] Timed out on locking store, err:Store is locked. azure-vnet plugin",
  ]),
  ...lines("cni-kubeconfig-ca-stale", [
    setUp(
      'plugin type="calico" failed (add): error getting ClusterInformation: Get "https://[10.96.0.1]:443/apis/crd.projectcalico.org/v1/clusterinformations/default": x509: certificate signed by unknown authority',
    ),
  ]),
  ...lines("multus-shim-newer-than-daemon", [
    "2026-09-09T06:02:11Z [verbose] kube-multus-ds-x7: POST /readyz: http not found",
  ]),
  ...lines(
    "multus-daemon-down-or-wedged",
    [
      setUp(
        'plugin type="multus-shim" name="multus-cni-network" failed (add): CmdAdd (shim): timed out waiting for the condition',
      ),
    ],
    ["multus-shim-newer-than-daemon"],
  ),
  ...lines("interface-name-assigned", [
    `failed to destroy network for pod sandbox k8s_web-0_shop_${UID}_0(${ID}): network "multus-cni-network" requested interface name "eth0" already assigned`,
  ]),
  ...lines("cri-dockerd-checkpoint-missing", [
    'failed to "KillPodSandbox" with KillPodSandboxError: "rpc error: code = Unknown desc = networkPlugin cni failed to teardown pod \\"web-0_shop\\" network: could not retrieve port mappings: key is not found"',
  ]),
  ...lines("crio-runtime-changed", [
    `time="2026-11-15T03:22:07Z" level=warning msg="Could not restore sandbox ${ID}: error reading sandbox state from disk \\"${ID}\\": runtime not correctly setup"`,
    `level=warning msg="Could not restore sandbox ${ID}: something else"`,
    `level=error msg="Failed to update container state for ${ID}: \`/usr/bin/crun state\` failed: exit status 1"`,
  ]),
];
