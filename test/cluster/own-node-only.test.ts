import { readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { type ControlPlane, startControlPlane } from "../../lab/cluster/control-plane.ts";
import { ensureClusterTools } from "../../lab/cluster/tools.ts";
import { until } from "../../lab/poll.ts";
import { ensureTools } from "../../lab/tools.ts";
import { HANG_GUARD_MS, WAIT_MS } from "./lab-cluster.ts";

const OWN = "node-a";
const OTHER = "node-b";

/** Only the API server: nodes and pods without a kubelet are enough for this test. */
async function controlPlane(): Promise<ControlPlane> {
  const programs = await ensureClusterTools();
  if (!programs.available) throw new Error(programs.reason);
  const started = await startControlPlane(await ensureTools(), programs);
  onTestFinished(() => started.destroy());
  return started;
}

const deployed = ["agent.yaml", "healing.yaml"]
  .map((name) => readFileSync(`deploy/rbac/${name}`, "utf8"))
  .join("\n---\n");
const crds = ["ghostreports", "ghostheals"]
  .map((name) => readFileSync(`deploy/helm/unghost/files/crds/${name}.yaml`, "utf8"))
  .join("\n---\n");
const policy = readFileSync("deploy/rbac/own-node-only.yaml", "utf8");

function pod(namespace: string, name: string, nodeName: string | undefined, serviceAccountName = "default"): object {
  const containers = [{ name: "main", image: "pause" }];
  const where = nodeName === undefined ? { schedulerName: "none" } : { nodeName };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace, name },
    spec: { containers, serviceAccountName, ...where },
  };
}

const lease = (name: string, holderIdentity?: string): object => ({
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  metadata: { namespace: "unghost", name },
  spec: { ...(holderIdentity === undefined ? {} : { holderIdentity }), leaseDurationSeconds: 30 },
});

const event = (name: string, host: string, more: object = {}): object => ({
  apiVersion: "v1",
  kind: "Event",
  metadata: { namespace: "default", name },
  involvedObject: { apiVersion: "v1", kind: "Node", name: host, uid: host },
  reason: "GhostDetected",
  source: { component: "unghost", host },
  reportingComponent: "unghost",
  reportingInstance: host,
  ...more,
});
const aboutPod = (name: string) => ({ involvedObject: { apiVersion: "v1", kind: "Pod", namespace: "default", name } });

/** kubectl reads what it patches; the agent does not. */
const forKubectl: readonly object[] = [
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "for-kubectl" },
    rules: [
      { apiGroups: [""], resources: ["nodes/status", "events"], verbs: ["get"] },
      {
        apiGroups: ["unghost.dev"],
        resources: ["ghostreports/status", "ghostheals", "ghostheals/status"],
        verbs: ["get"],
      },
    ],
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: "for-kubectl" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "for-kubectl" },
    subjects: [{ kind: "ServiceAccount", namespace: "unghost", name: "unghost-agent" }],
  },
];

const DRY = "--dry-run=server";
const report = (name: string, more: object = {}): object => ({
  apiVersion: "unghost.dev/v1alpha1",
  kind: "GhostReport",
  metadata: { name },
  ...more,
});
const node = (name: string) => ({ apiVersion: "v1", kind: "Node", name, uid: "00000000-0000-0000-0000-000000000000" });
const REPORTED = {
  verdict: "healthy",
  observedAt: "2026-03-01T12:00:00Z",
  agentVersion: "0.1.0",
  totals: { findings: 0, blockedPods: 0 },
  truncated: false,
};
/** By the same request as the agent's. */
const applyReport = (name: string, more: object, ...flags: readonly string[]): Attempt => ({
  args: ["apply", "--server-side", "--force-conflicts", "--field-manager=unghost", "-f", "-", DRY, ...flags],
  object: report(name, more),
});
const applyStatus = (name: string, status: object = {}) =>
  applyReport(name, { status: { ...REPORTED, ...status } }, "--subresource=status");
const request = (name: string, to: string): object => ({
  apiVersion: "unghost.dev/v1alpha1",
  kind: "GhostHeal",
  metadata: { name },
  spec: { node: to, requestedBy: "kubernetes-admin", dryRun: true },
});
/** By the same request as the agent's. */
const answer = (name: string): Attempt => ({
  args: ["patch", "ghostheal", name, "--subresource=status", "--type=merge", DRY, `-p=${JSON.stringify(ANSWERED)}`],
});
const ANSWERED = { status: { outcome: "refused", code: "stale", message: "It is too old." } };
const OWN_CONDITION = { type: "GhostSandboxes", status: "True" };
const patchStatus = (name: string, patch: object, type: "strategic" | "merge" | "json" = "strategic") => [
  "patch",
  "node",
  name,
  "--subresource=status",
  `--type=${type}`,
  `-p=${JSON.stringify(patch)}`,
  DRY,
];
const OWN_CONDITIONS = [OWN_CONDITION, { type: "SandboxCreation", status: "False" }];
const patchNode = (name: string) => patchStatus(name, { status: { conditions: OWN_CONDITIONS } });
const aboutNode = (name: string) => ({ involvedObject: { apiVersion: "v1", kind: "Node", name, uid: name } });
const patchEvent = (name: string, patch: object) => ["patch", "event", name, `-p=${JSON.stringify(patch)}`, DRY];
const deletePod = (name: string) => ["delete", "pod", name, "--wait=false", DRY];

interface Attempt {
  readonly args: readonly string[];
  readonly object?: object;
}

const write = (verb: "create" | "replace", object: object): Attempt => ({ args: [verb, "-f", "-", DRY], object });

const ALLOWED: Readonly<Record<string, Attempt>> = {
  "its own node's conditions": { args: patchNode(OWN) },
  "a pod of its own node": { args: deletePod("on-a") },
  "a slot in its own name": write("create", lease("unghost-heal-1", OWN)),
  "a slot that it gives back": write("replace", lease("held-by-a")),
  "a slot that it takes over": write("replace", lease("held-by-b", OWN)),
  "an event of its own": write("create", event("own", OWN)),
  "an event of its own about a pod": write("create", event("own-pod", OWN, aboutPod("on-a"))),
  "an event of its own, counted again": { args: patchEvent("by-a", { count: 2 }) },
  "its own report": applyReport(OWN, { metadata: { name: OWN, ownerReferences: [node(OWN)] } }),
  "the status of its own report": applyStatus(OWN),
  "the answer to a request to its node": answer("to-a"),
  "a request to its node, removed": { args: ["delete", "ghostheal", "to-a", DRY] },
  "its own report, deleted": { args: ["delete", "ghostreport", OWN, DRY] },
  "its own condition, removed": {
    args: patchStatus(OWN, { status: { conditions: OWN_CONDITIONS.map(({ type }) => ({ type, $patch: "delete" })) } }),
  },
};

const ACROSS: Readonly<Record<string, Attempt>> = {
  "another node's conditions": { args: patchNode(OTHER) },
  "a pod of another node": { args: deletePod("on-b") },
  "a pod of no node yet": { args: deletePod("unscheduled") },
  "a slot in another's name": write("create", lease("unghost-heal-1", OTHER)),
  "a slot that another holds, given back": write("replace", lease("held-by-b")),
  "a slot handed to another": write("replace", lease("held-by-a", OTHER)),
  "an event as another": write("create", event("other", OTHER)),
  "another node's report": applyReport(OTHER, {}),
  "a report of no node": applyReport("node-c", {}),
  "the status of another node's report": applyStatus(OTHER),
  "the answer to a request to another node": answer("to-b"),
  "a request to another node, removed": { args: ["delete", "ghostheal", "to-b", DRY] },
  "another node's report, deleted": { args: ["delete", "ghostreport", OTHER, DRY] },
};

const ready = (status: string) => ({ type: "Ready", status, reason: "KubeletReady", message: "" });
const metadata = (fields: object) => ({ args: patchStatus(OWN, { metadata: fields }) });
const status = (fields: object) => ({ args: patchStatus(OWN, { status: fields }) });

/** What nodes/status and events allow of its own node, and is not its own. */
const BEYOND: Readonly<Record<string, Attempt>> = {
  "a label": metadata({ labels: { zone: "a" } }),
  "a label that NodeRestriction forbids kubelet": metadata({
    labels: { "node-restriction.kubernetes.io/tenant": "a" },
  }),
  "a role label": metadata({ labels: { "node-role.kubernetes.io/control-plane": "" } }),
  "a label together with its condition": {
    args: patchStatus(OWN, { metadata: { labels: { zone: "a" } }, status: { conditions: [OWN_CONDITION] } }),
  },
  "a label by a JSON patch": {
    args: patchStatus(OWN, [{ op: "add", path: "/metadata/labels", value: { zone: "a" } }], "json"),
  },
  "a label removed": { args: patchStatus(OWN, { metadata: { labels: { given: null } } }, "merge") },
  "an annotation": metadata({ annotations: { "unghost.dev/paused": "false" } }),
  "an annotation removed": { args: patchStatus(OWN, { metadata: { annotations: { given: null } } }, "merge") },
  "a finalizer": metadata({ finalizers: ["example.com/hold"] }),
  "an owner reference": metadata({
    ownerReferences: [{ apiVersion: "v1", kind: "Node", name: OTHER, uid: "00000000-0000-0000-0000-000000000000" }],
  }),
  "a label on its report": applyReport(OWN, { metadata: { name: OWN, labels: { a: "b" } } }),
  "an annotation on its report": applyReport(OWN, { metadata: { name: OWN, annotations: { a: "b" } } }),
  "a finalizer on its report": applyReport(OWN, { metadata: { name: OWN, finalizers: ["example.com/hold"] } }),
  "another owner of its report": applyReport(OWN, { metadata: { name: OWN, ownerReferences: [node(OTHER)] } }),
  "an address": status({ addresses: [{ type: "InternalIP", address: "192.0.2.7" }] }),
  "the capacity": status({ capacity: { "example.com/gpu": "8" } }),
  "the allocatable": status({ allocatable: { cpu: "64" } }),
  "the node's information": status({ nodeInfo: { kubeletVersion: "v9.9.9" } }),
  "kubelet's port": status({ daemonEndpoints: { kubeletEndpoint: { Port: 1 } } }),
  "the images": status({ images: [{ names: ["example.com/image:1"], sizeBytes: 1 }] }),
  "the volumes in use": status({ volumesInUse: ["kubernetes.io/csi/example^v"] }),
  "the attached volumes": status({ volumesAttached: [{ name: "kubernetes.io/csi/example^v", devicePath: "/dev/x" }] }),
  "the phase": status({ phase: "Terminated" }),
  "the condition Ready": status({ conditions: [ready("False")] }),
  "the condition Ready together with its own": status({ conditions: [OWN_CONDITION, ready("False")] }),
  "a new condition of another": status({ conditions: [{ type: "KernelDeadlock", status: "True" }] }),
  "the condition Ready removed": status({ conditions: [{ type: "Ready", $patch: "delete" }] }),
  "all conditions but its own": { args: patchStatus(OWN, { status: { conditions: [OWN_CONDITION] } }, "merge") },
  "an event as kubelet": write("create", event("kubelet", OWN, { source: { component: "kubelet", host: OWN } })),
  "an event as kubelet about a pod of another node": write(
    "create",
    event("kubelet-b", OWN, { source: { component: "kubelet", host: OWN }, ...aboutPod("on-b") }),
  ),
  "an event reported by kubelet": write("create", event("reported", OWN, { reportingComponent: "kubelet" })),
  "an event without a source": write("create", event("no-source", OWN, { source: {} })),
  "an event with a reason of kubelet": write("create", event("reason", OWN, { reason: "NodeNotReady" })),
  "an event about another node": write("create", event("about-b", OWN, aboutNode(OTHER))),
  "an event about a Deployment": write(
    "create",
    event("deployment", OWN, {
      involvedObject: { apiVersion: "apps/v1", kind: "Deployment", namespace: "default", name: "web" },
    }),
  ),
  "an event of kubelet, taken over": { args: patchEvent("by-kubelet", event("by-kubelet", OWN)) },
  "an event of its own, handed to kubelet": {
    args: patchEvent("by-a", { source: { component: "kubelet", host: OWN } }),
  },
};

/** What its role does not allow in the first place. */
const NEVER: Readonly<Record<string, Attempt>> = {
  "the node itself": { args: ["patch", "node", OWN, `-p=${JSON.stringify({ spec: { unschedulable: true } })}`, DRY] },
  "the node deleted": { args: ["delete", "node", OWN, DRY] },
  "a node created": write("create", { apiVersion: "v1", kind: "Node", metadata: { name: "node-c" } }),
  "a pod created": write("create", pod("default", "new", OWN)),
  "a pod's labels": { args: ["label", "pod", "on-a", "a=b", DRY] },
  "an event deleted": { args: ["delete", "event", "by-a", DRY] },
  "a volume attachment deleted": { args: ["delete", "volumeattachments", "any", DRY] },
  "a request to itself": write("create", request("new", OWN)),
  "a request to another node": write("create", request("new", OTHER)),
  "a request sent to another node": {
    args: ["patch", "ghostheal", "to-a", "--type=merge", `-p=${JSON.stringify({ spec: { node: OTHER } })}`, DRY],
  },
  "a Secret read": { args: ["get", "secrets", "--namespace=unghost"] },
  "a role of its own": write("create", {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "more" },
    rules: [],
  }),
};

test(
  "a node's token may change its own node and no other, and without a node nothing",
  async () => {
    const plane = await controlPlane();
    const kubectl = (args: readonly string[], options?: { readonly stdin: string }) => plane.kubectl(args, options);
    const apply = (objects: readonly object[] | string) => {
      const stdin =
        typeof objects === "string" ? objects : JSON.stringify({ kind: "List", apiVersion: "v1", items: objects });
      return kubectl(["apply", "-f", "-"], { stdin });
    };
    const hasAccount = (namespace: string) => () =>
      kubectl(["get", "serviceaccount", "default", `--namespace=${namespace}`]).catch(() => undefined);
    await apply(deployed);
    await apply(crds);
    await kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
    const given = { labels: { given: "1" }, annotations: { given: "1" } };
    await apply([OWN, OTHER].map((name) => ({ apiVersion: "v1", kind: "Node", metadata: { name, ...given } })));
    for (const name of [OWN, OTHER])
      await kubectl(patchStatus(name, { status: { conditions: [ready("True")] } }).filter((arg) => arg !== DRY));
    for (const namespace of ["default", "unghost"]) {
      await until(`${namespace} has its ServiceAccount`, WAIT_MS, hasAccount(namespace));
    }
    await apply([
      ...forKubectl,
      pod("unghost", "agent-a", OWN, "unghost-agent"),
      pod("default", "on-a", OWN),
      pod("default", "on-b", OTHER),
      pod("default", "unscheduled", undefined),
      lease("held-by-a", OWN),
      lease("held-by-b", OTHER),
      report(OWN),
      report(OTHER),
      request("to-a", OWN),
      request("to-b", OTHER),
      event("by-a", OWN),
      event("by-kubelet", OWN, { source: { component: "kubelet", host: OWN }, reportingComponent: "kubelet" }),
    ]);
    const token = async (...bound: readonly string[]) =>
      (await kubectl(["create", "token", "unghost-agent", "--namespace=unghost", ...bound])).trim();
    const own = { token: await token("--bound-object-kind=Pod", "--bound-object-name=agent-a") };
    const unbound = { token: await token() };
    const attempt = ({ args, object }: Attempt, credentials: { readonly token: string }) =>
      plane.kubectlAs(credentials, args, object === undefined ? {} : { stdin: JSON.stringify(object) });
    const refusedAmong = async (
      attempts: Readonly<Record<string, Attempt>>,
      credentials: { readonly token: string },
    ) => {
      const results = new Map<string, string>();
      for (const [name, one] of Object.entries(attempts)) {
        const { code, stderr } = await attempt(one, credentials);
        if (code !== 0) results.set(name, stderr);
      }
      return results;
    };

    // RBAC alone allows other nodes, which is why there is a policy.
    expect([...(await refusedAmong({ ...ALLOWED, ...ACROSS, ...BEYOND }, own)).keys()]).toEqual([]);
    const never = await refusedAmong(NEVER, own);
    expect([...never.keys()]).toEqual(Object.keys(NEVER));

    await apply(policy);
    await until("the policy is in force", WAIT_MS, async () => {
      const { code } = await attempt(ACROSS["another node's conditions"] ?? { args: [] }, own);
      return code === 0 ? undefined : true;
    });

    expect([...(await refusedAmong(ALLOWED, own))]).toEqual([]);
    const across = await refusedAmong(ACROSS, own);
    expect([...across.keys()]).toEqual(Object.keys(ACROSS));
    const beyond = await refusedAmong(BEYOND, own);
    expect([...beyond.keys()]).toEqual(Object.keys(BEYOND));
    for (const [name, stderr] of [...across, ...beyond]) expect(stderr, name).toContain("the agent of node-a may");
    const withoutNode = await refusedAmong({ ...ALLOWED, ...ACROSS, ...BEYOND }, unbound);
    expect([...withoutNode.keys()]).toEqual(Object.keys({ ...ALLOWED, ...ACROSS, ...BEYOND }));
    for (const [name, stderr] of withoutNode) expect(stderr, name).toContain("does not name the node it belongs to");
    // Other users are not affected.
    await kubectl(patchNode(OTHER));
  },
  HANG_GUARD_MS,
);
