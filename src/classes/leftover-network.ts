import type { Detected } from "../evidence/finding.ts";
import { freshErrors } from "../evidence/reports.ts";
import type { NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import type { HostRoute } from "../node/types/pointed-at.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const staleHostRoute: ClassDefinition = {
  id: "stale-host-route",
  code: "A14",
  title: "A route to the pod's address is left from another pod",
  explanation:
    "The network plugin cannot route the new pod's address, because the node still has a route for it over the interface of a pod that is gone. The same address was handed out again before the old route was taken away.",
  mechanism:
    "calico's plugin adds a /32 route over the pod's cali… interface on the host and refuses when one exists over another interface. A removal that never ran, or addresses that were forgotten and handed out twice, leave such a route.",
  signatures: () => [
    {
      text: "error adding host side routes for interface: <cali…>, error: route (Ifindex: <n>, Dst: <ip>/32 …) already exists for an interface other than '<cali…>'",
      pattern: /already exists for an interface other than/,
      confidence: 0.95,
    },
    {
      text: "error adding host side routes for interface: <cali…>, error: failed to add route file exists",
      pattern: /error adding host side routes[^]{0,300}?(?:file exists|already exists|[…>]$)/,
      confidence: 0.9,
    },
  ],
  logFragments: ["host side routes", "for an interface other than"],
  inSnapshot:
    "Where a log has the error, the node's routes still have one for that address over another interface than the plugin's.",
  versions: {
    since: "calico 2.6",
    until: "open",
    ends: "No upgrade is known to end it; 3.27 is the last one in the reports.",
    note: "The older text “file exists” is from before the plugin named the other interface.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Name the interface that has the route: ip route get <ip>, and whose pod it is: calicoctl get workloadendpoint -o wide.",
      "It is of no running pod: remove the route (ip route del <ip>/32 dev <interface>), then the interface.",
      "It is of a running pod: the address was handed out twice. Repair that first: calicoctl ipam check.",
    ],
    gates: [
      "No running pod has the address.",
      "The interface's other end is in no network namespace of a Ready sandbox.",
    ],
  },
  byHand: ["ip route | grep <ip>; ip route del <ip>/32 dev <old interface>", "calicoctl ipam check --show-problem-ips"],
  danger:
    "Removing the route of a running pod cuts it off. Two pods with one address corrupt each other's connections.",
  links: [
    "projectcalico/calico#10723",
    "projectcalico/calico#1253",
    "projectcalico/calico#1406",
    "projectcalico/calico#3940",
    "projectcalico/calico#11755",
  ],
  detect: detectHostRoutes,
};

const ROUTE_REFUSED =
  /\bDst: ([\d.]{7,15})(?:\/32)?[^\d.][^()]{0,300}\) already exists for an interface other than '?([^'\s]{1,15})'?/;

function detectHostRoutes(view: NodeView): readonly Detected[] {
  const routes = view.snapshot.pointedAt?.routes ?? [];
  const found = new Map<string, Detected>();
  for (const [, address = "", wanted = ""] of freshErrors(view, ROUTE_REFUSED)) {
    const route = routes.find((one) => one.prefix === 32 && one.destination === address && one.device !== wanted);
    if (route !== undefined) found.set(address, routeLeft(route, liveOwnerOf(address, view)));
  }
  return [...found.values()];
}

/** The name of a pod with a Ready sandbox that has the address. */
function liveOwnerOf(address: string, { snapshot }: NodeView): string | undefined {
  const results = valueOr(snapshot.cni.results, undefined) ?? [];
  const owners = new Set<string>(
    results.flatMap(({ sandboxId, addresses }) =>
      addresses?.some((one) => one.startsWith(`${address}/`)) === true ? [sandboxId] : [],
    ),
  );
  const sandboxes = valueOr(snapshot.cri, undefined)?.sandboxes ?? [];
  const live = sandboxes.find(({ id, state }) => state === "ready" && owners.has(id));
  return live === undefined ? undefined : `${live.pod.namespace}/${live.pod.name}`;
}

function routeLeft({ device, destination }: HostRoute, owner: string | undefined): Detected {
  const end =
    owner === undefined
      ? `manual: with no running pod behind it, ip route del ${destination}/32 dev ${device}, then ip link del ${device}`
      : `manual: the address was handed out twice; repair that first (calicoctl ipam check --show-problem-ips), and leave the route of ${owner}`;
  return {
    severity: "critical",
    subject: { type: "node", path: `route ${destination}/32` },
    summary: `the node still routes ${destination} over ${device}${owner === undefined ? "" : `, to the running pod ${owner}`}, and a new pod gets that address`,
    evidence: [{ source: "kernel", fact: `route: ${destination}/32 dev ${device}` }],
    blocks: ["the pod that gets that address"],
    untreatable: end,
  };
}

export const staleBridgeAddress: ClassDefinition = {
  id: "stale-bridge-address",
  code: "A15",
  sharedCause: true,
  title: "The node's bridge still has the address of another pod range",
  explanation:
    "The bridge that pods are plugged into has an address that does not belong to this node's current pod range. The plugin refuses to change it, so no pod with its own network can start here. It happens when a node gets a new pod range: joined again, reset, or its network add-on installed again.",
  mechanism:
    "The bridge plugin wants the gateway of the configured subnet on the bridge. A bridge left from an earlier configuration has another one, and without forceAddress the plugin does not replace it.",
  signatures: () => [
    {
      text: 'failed to set bridge addr: "cni0" already has an IP address different from <ip>',
      pattern: /already has an ip address different from/,
      confidence: 0.97,
    },
    { text: 'could not add IP address to "cni0": file exists', pattern: /failed to set bridge addr/, confidence: 0.85 },
  ],
  logFragments: ["an ip address different from", "set bridge addr"],
  inSnapshot: "Where a log has the error, the bridge routes another network than the one that the plugin wants on it.",
  versions: {
    since: "every release of the bridge plugin, also below flannel",
    until: "open",
    ends: "No upgrade: delete the bridge when its subnet changes.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Compare ip -4 addr show <bridge> with the configured subnet (flannel: /run/flannel/subnet.env).",
      "With no Ready pod on it: ip link delete <bridge>; the next pod makes it again.",
      "With pods on it: drain the node first.",
    ],
    gates: ["No Ready sandbox is plugged into the bridge: ip link show master <bridge> is empty."],
  },
  byHand: ["kubectl drain the node; ip link set cni0 down; ip link delete cni0; kubectl uncordon."],
  danger: "Deleting the bridge cuts off every pod that is still plugged into it.",
  links: ["kubernetes/kubernetes#76070", "kubernetes/kubernetes#39557"],
  detect: detectBridges,
};

const BRIDGE_REFUSED = /"([^"\s]{1,15})" already has an IP address different from ([\d.]{7,15})\/(\d{1,2})/;

function detectBridges(view: NodeView): readonly Detected[] {
  const routes = view.snapshot.pointedAt?.routes ?? [];
  const found = new Map<string, Detected>();
  for (const [, bridge = "", address = "", bits = ""] of freshErrors(view, BRIDGE_REFUSED)) {
    const own = routes.filter(({ device, isDirect, prefix }) => device === bridge && isDirect && prefix < 32);
    const wanted = networkOf(address, Number(bits));
    const [stale] = own.filter(({ destination }) => destination !== wanted);
    if (stale === undefined || own.some(({ destination }) => destination === wanted)) continue;
    const has = `${stale.destination}/${stale.prefix}`;
    found.set(bridge, {
      severity: "critical",
      subject: { type: "node", path: bridge },
      summary: `bridge ${bridge} is still of ${has}, and this node's pods get addresses of ${wanted}/${bits}: no pod with its own network can start`,
      evidence: [{ source: "kernel", fact: `route: ${has} dev ${bridge}` }],
      blocks: ["every new pod with its own network"],
      untreatable: `manual: drain the node, then ip link set ${bridge} down and ip link delete ${bridge}; the next pod makes it again`,
    });
  }
  return [...found.values()];
}

function networkOf(address: string, prefix: number): string {
  const bytes = address.split(".").map(Number);
  return bytes.map((byte, index) => byte & (0xff00 >> Math.min(8, Math.max(0, prefix - index * 8))) & 0xff).join(".");
}

export const addressHeldByDeadPod: ClassDefinition = {
  id: "address-held-by-dead-pod",
  code: "A16",
  title: "calico: the fixed address is still assigned to the dead pod",
  explanation:
    "The pod asks for a fixed address, and calico still has it assigned to the sandbox from before the crash. calico does not give it out twice, so the pod cannot start until the old assignment is released.",
  mechanism:
    "calico keeps assignments in the cluster, by a handle of the sandbox's id. A sandbox whose DEL never ran, as after a power cut, keeps its handle; any address would do for other pods, but not for one with the annotation cni.projectcalico.org/ipAddrs.",
  signatures: () => [
    {
      text: 'plugin type="calico" failed (add): Address already assigned in block',
      pattern: /address already assigned in block/,
      confidence: 0.95,
    },
  ],
  logFragments: ["assigned in block"],
  inSnapshot: "calico's assignments are in the cluster and are not read.",
  versions: {
    since: "every calico release, with fixed addresses",
    until: "open",
    ends: "No upgrade: release the address with calicoctl ipam release.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "If the old sandbox is still listed on a node, stop it there: its DEL releases the address.",
      "Otherwise find whose handle it is: calicoctl ipam show --ip=<ip>.",
      "If that pod is gone: calicoctl ipam release --ip=<ip>.",
    ],
    gates: ["No pod has the address, on no node.", "The handle's sandbox is listed by no runtime."],
  },
  byHand: [
    "calicoctl ipam show --ip=<ip>, then calicoctl ipam release --ip=<ip>",
    "calicoctl ipam check finds all of them.",
  ],
  danger: "Releasing the address of a running pod gives it to a second one.",
  links: ["projectcalico/calico#11358", "projectcalico/calico#5203", "projectcalico/libcalico-go#1329"],
};

export const virtualFunctionBusy: ClassDefinition = {
  id: "virtual-function-busy",
  code: "A17",
  title: "SR-IOV: the virtual function is not free",
  explanation:
    "The network card's virtual function that was given to this pod cannot be moved into it or switched on: an interface of the wanted name is there already, or the function is still being set up or was never given back by an earlier pod.",
  mechanism:
    "sriov-cni renames the function, moves it into the pod's namespace and sets it up. “file exists” means that a device of that name is in the target namespace, “device or resource busy” that the driver does not let it go up, as while its configuration is applied.",
  signatures: () => [
    {
      text: "failed to move vf <n> to netns: file exists",
      pattern: /failed to (?:move|rename) vf \d{1,4} [^]{0,80}?(?:file exists|resource busy)/,
      confidence: 0.95,
    },
    {
      text: 'error setting up interface in container namespace: "error bringing interface up in container ns: device or resource busy"',
      pattern: /error bringing interface up in container ns/,
      confidence: 0.9,
    },
    {
      text: 'failed to set up pod interface "<net1>" from the device "<pf>": … file exists | device or resource busy',
      pattern:
        /failed to set up pod interface \S{1,40} from the device \S{1,40}[^]{0,300}?(?:file exists|resource busy)/,
      confidence: 0.85,
    },
  ],
  logFragments: ["vf ", "interface up in container", "set up pod interface"],
  inSnapshot: "Virtual functions are not read; ip link show <pf> lists them, and ip netns those that a pod has.",
  versions: {
    since: "hustcat/sriov-cni, and k8snetworkplumbingwg/sriov-cni that followed it",
    until: "sriov-cni 2.6 in the reports",
    ends: "Update k8snetworkplumbingwg/sriov-cni beyond 2.6.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Find where the function is: ls /sys/class/net/<pf>/device/virtfn<n>/net is empty while another namespace has it.",
      "A dead sandbox has it: stop and remove that sandbox, whose DEL gives it back.",
      "No pod has it: take it down and up again on the host, and let the pod be made again.",
    ],
    gates: ["No running pod has the function."],
  },
  byHand: ["ip link show <pf>; ip netns list; crictl pods --state NotReady", "Update sriov-cni and the card's driver."],
  danger: "Resetting the function of a running pod cuts its network.",
  links: ["k8snetworkplumbingwg/sriov-cni#213", "hustcat/sriov-cni#35", "hustcat/sriov-cni#1", "hustcat/sriov-cni#30"],
};

export const whereaboutsReservationLeak: ClassDefinition = {
  id: "whereabouts-reservation-leak",
  code: "C13",
  title: "whereabouts: the range is full of dead pods' addresses",
  explanation:
    "whereabouts has no address left to give out although few pods use the range: reservations of pods that died without a DEL, as in a power cut, were never freed. They are kept in the cluster, so no node's clean-up finds them.",
  mechanism:
    "Each reservation is an entry in an IPPool with the pod's name and sandbox. Only DEL, or whereabouts' own reconciler, takes it out.",
  signatures: () => [
    {
      text: "error at storage engine: Could not allocate IP in range: ip: <a> / - <b> / range: <cidr>",
      pattern: /could not allocate ip in range/,
      confidence: 0.93,
    },
  ],
  logFragments: ["could not allocate ip"],
  inSnapshot: "IPPools are in the cluster and are not read.",
  versions: {
    since: "every release of whereabouts",
    until: "open",
    ends: "Update to 0.6 before you rely on its reconciler: earlier ones freed addresses of running pods (whereabouts#162, #176, #207).",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Compare: kubectl get ippools.whereabouts.cni.cncf.io -A -o yaml against the pods that run.",
      "Run the reconciler of a current release (DaemonSet's schedule, or the ip-reconciler job).",
    ],
    gates: ["The reservation's pod is gone from the API.", "No sandbox with its container id is listed on any node."],
  },
  byHand: [
    "kubectl get overlappingrangeipreservations.whereabouts.cni.cncf.io -A lists who has what.",
    "Remove the allocations of pods that no longer exist from the IPPool.",
  ],
  danger: "Freeing the address of a running pod makes a duplicate address in the network.",
  links: [
    "k8snetworkplumbingwg/whereabouts#291",
    "k8snetworkplumbingwg/whereabouts#75",
    "k8snetworkplumbingwg/whereabouts#162",
    "k8snetworkplumbingwg/whereabouts#176",
    "k8snetworkplumbingwg/whereabouts#712",
  ],
};
