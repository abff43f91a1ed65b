import { type Check, missing, optionalCheck, passed, type Risk } from "../../doctor/doctor-report.ts";
import { runtimeRisk } from "../../doctor/runtime-support.ts";
import { printable } from "../../host/text.ts";
import { KubeError } from "../../kube/errors.ts";
import { count, naturalOrder } from "../../report/words.ts";
import { type FleetNode, isRecent } from "../fleet-nodes.ts";
import { nodeList } from "../scan-report.ts";
import type { FleetDoctorFacts } from "./facts.ts";

/** What works in the cluster, and what does not. Pure. */
export function fleetChecks(facts: FleetDoctorFacts, version: string): readonly Check[] {
  const { nodes } = facts.fleet;
  return [
    ...facts.permissions,
    checkResources(facts.resources),
    ...POLICIES.map((policy) => checkPolicy(facts.policies, policy)),
    checkAgents(nodes),
    checkVersions(nodes, version),
    checkReports(nodes, facts.now),
    checkBreaker(nodes),
    checkSlots(facts.leases),
  ];
}

/** What makes ghosts likely, or keeps them from being healed. It is no fault of the installation. */
export function fleetRisks({ fleet: { nodes }, leases, runtimes }: FleetDoctorFacts): readonly Risk[] {
  return [
    ...aboutNodes(nodes, isNotReady, {
      id: "nodes not ready",
      detail: "are not Ready: their reports may be old",
      end: "kubectl describe node NODE; what kubelet reports there",
    }),
    ...aboutNodes(nodes, ({ report }) => report?.podCreation?.able === "no", {
      id: "nodes without new pods",
      detail: "cannot create pods",
      end: "kubectl unghost scan, then kubectl unghost heal NODE",
    }),
    ...aboutNodes(nodes, ({ verdict }) => verdict === "ghosts", {
      id: "ghosts",
      detail: "have ghosts",
      end: "kubectl unghost heal NODE",
    }),
    ...aboutNodes(nodes, (node) => reasonOf(node) === "HealingPaused", {
      id: "healing paused",
      detail: "have the mark unghost.dev/paused: nothing is healed there",
      end: "kubectl annotate node NODE unghost.dev/paused-",
    }),
    ...deadHolders(nodes, leases),
    ...runtimeRisks(runtimes),
  ];
}

const RESOURCES = ["ghostreports", "ghostreports/status", "ghostheals", "ghostheals/status"];

function checkResources(resources: FleetDoctorFacts["resources"]): Check {
  const id = "custom resources";
  const neededFor = "the reports of the agents, and requests to heal";
  if (resources instanceof KubeError) {
    if (resources.kind !== "not-found") return missing(id, `could not be asked: ${resources.message}`, neededFor);
    const next = "Install unghost in the cluster, or upgrade it: helm upgrade --install unghost (docs/install.md).";
    return missing(id, "the API server does not serve unghost.dev/v1alpha1", neededFor, next);
  }
  const lacking = RESOURCES.filter((name) => !resources.includes(name));
  if (lacking.length === 0) return passed(id, "ghostreports and ghostheals of unghost.dev/v1alpha1");
  const next = "Upgrade the definitions: helm upgrade unghost, or kubectl apply the manifests of this version.";
  return missing(id, `unghost.dev/v1alpha1 has no ${lacking.join(", ")}`, neededFor, next);
}

interface Policy {
  /** The end of its name: the chart puts the name of the installation in front. */
  readonly suffix: string;
  readonly adds: string;
}

const POLICIES: readonly Policy[] = [
  { suffix: "own-node-only", adds: "a stolen token of an agent writes about its own node only" },
  { suffix: "heal-requests", adds: "spec.requestedBy of a GhostHeal is the user who created it" },
];

function checkPolicy(policies: FleetDoctorFacts["policies"], { suffix, adds }: Policy): Check {
  const id = `admission policy ${suffix}`;
  const next = "Kubernetes 1.32 and admissionPolicy.enabled=true of the chart, or deploy/rbac.";
  if (policies instanceof KubeError)
    return optionalCheck(missing(id, `could not be read: ${policies.message}`, adds, next));
  const found = policies.filter(({ name }) => name.endsWith(`-${suffix}`));
  if (found.some(({ isBound }) => isBound)) return passed(id, "in force");
  return optionalCheck(missing(id, found.length > 0 ? "has no binding" : "is not there", adds, next));
}

const AGENT_PODS = "kubectl get pods -A -o wide -l app.kubernetes.io/name=unghost";

function checkAgents(nodes: readonly FleetNode[]): Check {
  const id = "agents";
  const neededFor = "finding and healing ghosts on these nodes";
  const without = nodes.filter(({ agent }) => agent === "none" || agent === "not-ready");
  if (nodes.length === 0) return missing(id, "the cluster has no nodes", neededFor);
  if (without.length === 0) return passed(id, `on ${count(nodes.length, "node")}`);
  const part = (agent: FleetNode["agent"], words: string): readonly string[] => {
    const names = namesOf(without.filter((node) => node.agent === agent));
    return names.length === 0 ? [] : [`${words} on ${names.length} of ${nodes.length}: ${nodeList(names)}`];
  };
  const detail = [...part("none", "none"), ...part("not-ready", "not ready")].join("; ");
  const next = `See ${AGENT_PODS}. Without an agent: kubectl unghost scan --without-agents NODE.`;
  return { ...missing(id, detail, neededFor, next), nodes: namesOf(without) };
}

function checkVersions(nodes: readonly FleetNode[], version: string): Check {
  const id = "agent versions";
  const reporting = nodes.filter(({ report }) => report !== undefined);
  const byVersion = Map.groupBy(reporting, ({ report }) => report?.agentVersion || "unknown");
  const others = reporting.filter(({ report }) => report?.agentVersion !== version);
  if (others.length === 0) return passed(id, reporting.length === 0 ? "no reports" : `all ${version}`);
  const words = [...byVersion].map(([of, having]) => `${of} on ${nodeList(namesOf(having))}`);
  const adds = `the same findings and words as unghost ${version}, which asks`;
  const next = "Upgrade the older of the two: docs/upgrade.md.";
  return { ...optionalCheck(missing(id, words.join("; "), adds, next)), nodes: namesOf(others) };
}

function checkReports(nodes: readonly FleetNode[], now: Date): Check {
  const id = "reports";
  const neededFor = "kubectl unghost scan and why";
  const hasAgent = ({ agent }: FleetNode) => agent === "ready" || agent === "no-pod";
  const none = namesOf(nodes.filter((node) => hasAgent(node) && node.report === undefined));
  const old = namesOf(
    nodes.filter((node) => hasAgent(node) && node.report !== undefined && !isRecent(node.report, now)),
  );
  const odd = namesOf(nodes.filter(({ agent }) => agent === "unreadable"));
  const parts = [
    ...(none.length > 0 ? [`none of ${nodeList(none)}, where an agent is ready`] : []),
    ...(old.length > 0 ? [`older than an hour, although an agent is ready: ${nodeList(old)}`] : []),
    ...(odd.length > 0 ? [`of another version, and not readable: ${nodeList(odd)}`] : []),
  ];
  if (parts.length === 0) return passed(id, "current wherever an agent is ready");
  const next = "See the agent's log there for “GhostReport”, and whether its role grants ghostreports/status.";
  return { ...missing(id, parts.join("; "), neededFor, next), nodes: [...none, ...old, ...odd] };
}

function checkBreaker(nodes: readonly FleetNode[]): Check {
  const id = "breaker";
  const open = nodes.filter((node) => reasonOf(node) === "BreakerOpen");
  const [first] = open;
  if (first === undefined) return passed(id, "closed");
  const detail = `open on ${nodeList(namesOf(open))}: ${printable(first.report?.notHealing ?? "nothing is healed")}`;
  const next =
    "Find what these nodes have in common, such as the control plane or the network. Without more unhealthy nodes it closes after ten minutes.";
  return { ...missing(id, detail, "healing: nothing is healed while it is open", next), nodes: namesOf(open) };
}

const SLOT = /^unghost-heal-\d+$/;

function checkSlots(leases: FleetDoctorFacts["leases"]): Check {
  const id = "slots";
  if (leases instanceof KubeError)
    return optionalCheck(missing(id, `could not be read: ${leases.message}`, "which nodes heal at the moment"));
  const held = slotsOf(leases).flatMap(({ holder }) => (holder === "" ? [] : [holder]));
  return passed(id, held.length === 0 ? "none is held" : `held by ${nodeList(held.map(printable))}`);
}

function slotsOf(leases: FleetDoctorFacts["leases"]) {
  return leases instanceof KubeError ? [] : leases.filter(({ name }) => SLOT.test(name));
}

/** A slot is free 60 s after its last renewal, by the clock of the node that wants it. */
function deadHolders(nodes: readonly FleetNode[], leases: FleetDoctorFacts["leases"]): readonly Risk[] {
  return slotsOf(leases).flatMap(({ name, holder }) => {
    const node = nodes.find((one) => one.name === holder);
    if (holder === "" || (node !== undefined && node.agent !== "not-ready" && !isNotReady(node))) return [];
    const why = node === undefined ? "which does not exist" : "which is not Ready or has no ready agent";
    const detail = `${name} is held by ${holder}, ${why}`;
    return [
      {
        id: "slot of a dead node",
        detail,
        end: "the next node that needs it takes it over after a minute",
        nodes: [holder],
      },
    ];
  });
}

/** `containerd://1.6.33` of many nodes is one risk. */
function runtimeRisks(runtimes: FleetDoctorFacts["runtimes"]): readonly Risk[] {
  const byRuntime = Map.groupBy(runtimes, ({ runtime }) => runtime);
  return [...byRuntime]
    .toSorted(([one], [other]) => naturalOrder(one, other))
    .flatMap(([runtime, having]) => {
      const [, name, version] = /^([\w-]+):\/\/(.+)$/.exec(runtime) ?? [];
      if (name === undefined || version === undefined) return [];
      const nodes = having.map(({ node }) => printable(node));
      return runtimeRisk({ name, version }).map((risk) => ({
        ...risk,
        detail: `${risk.detail}: ${nodeList(nodes)}`,
        nodes,
      }));
    });
}

function aboutNodes(
  nodes: readonly FleetNode[],
  fits: (node: FleetNode) => boolean,
  { id, detail, end }: Omit<Risk, "nodes">,
): readonly Risk[] {
  const names = namesOf(nodes.filter(fits));
  return names.length === 0 ? [] : [{ id, detail: `${nodeList(names)} ${detail}`, end, nodes: names }];
}

function isNotReady({ nodeStatus }: FleetNode): boolean {
  return nodeStatus.startsWith("NotReady") || nodeStatus.startsWith("Unknown");
}

function reasonOf({ report }: FleetNode): string | undefined {
  return report?.conditions?.find(({ type }) => type === "GhostSandboxes")?.reason;
}

function namesOf(nodes: readonly FleetNode[]): string[] {
  return nodes.map(({ name }) => name).toSorted(naturalOrder);
}
