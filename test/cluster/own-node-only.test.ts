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

const event = (name: string, host: string): object => ({
  apiVersion: "v1",
  kind: "Event",
  metadata: { namespace: "default", name },
  involvedObject: { apiVersion: "v1", kind: "Node", name: host, uid: host },
  reason: "GhostDetected",
  source: { component: "unghost", host },
});

/** kubectl reads what it patches; the agent does not. */
const forKubectl: readonly object[] = [
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "for-kubectl" },
    rules: [{ apiGroups: [""], resources: ["nodes/status"], verbs: ["get"] }],
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
const condition = JSON.stringify({ status: { conditions: [{ type: "GhostSandboxes", status: "True" }] } });
const patchNode = (name: string) => [
  "patch",
  "node",
  name,
  "--subresource=status",
  "--type=strategic",
  `-p=${condition}`,
  DRY,
];
const deletePod = (name: string) => ["delete", "pod", name, "--wait=false", DRY];

interface Attempt {
  readonly args: readonly string[];
  readonly object?: object;
}

const write = (verb: "create" | "replace", object: object): Attempt => ({ args: [verb, "-f", "-", DRY], object });

const ALLOWED: Readonly<Record<string, Attempt>> = {
  "its own node's condition": { args: patchNode(OWN) },
  "a pod of its own node": { args: deletePod("on-a") },
  "a slot in its own name": write("create", lease("unghost-heal-1", OWN)),
  "a slot that it gives back": write("replace", lease("held-by-a")),
  "a slot that it takes over": write("replace", lease("held-by-b", OWN)),
  "an event of its own": write("create", event("own", OWN)),
};

const ACROSS: Readonly<Record<string, Attempt>> = {
  "another node's condition": { args: patchNode(OTHER) },
  "a pod of another node": { args: deletePod("on-b") },
  "a pod of no node yet": { args: deletePod("unscheduled") },
  "a slot in another's name": write("create", lease("unghost-heal-1", OTHER)),
  "a slot that another holds, given back": write("replace", lease("held-by-b")),
  "a slot handed to another": write("replace", lease("held-by-a", OTHER)),
  "an event as another": write("create", event("other", OTHER)),
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
    await apply([OWN, OTHER].map((name) => ({ apiVersion: "v1", kind: "Node", metadata: { name } })));
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
    expect([...(await refusedAmong({ ...ALLOWED, ...ACROSS }, own)).keys()]).toEqual([]);

    await apply(policy);
    await until("the policy is in force", WAIT_MS, async () => {
      const { code } = await attempt(ACROSS["another node's condition"] ?? { args: [] }, own);
      return code === 0 ? undefined : true;
    });

    expect([...(await refusedAmong(ALLOWED, own))]).toEqual([]);
    const across = await refusedAmong(ACROSS, own);
    expect([...across.keys()]).toEqual(Object.keys(ACROSS));
    for (const [name, stderr] of across) expect(stderr, name).toContain("the agent of node-a may");
    const withoutNode = await refusedAmong({ ...ALLOWED, ...ACROSS }, unbound);
    expect([...withoutNode.keys()]).toEqual(Object.keys({ ...ALLOWED, ...ACROSS }));
    for (const [name, stderr] of withoutNode) expect(stderr, name).toContain("does not name the node it belongs to");
    // Other users are not affected.
    await kubectl(patchNode(OTHER));
  },
  HANG_GUARD_MS,
);
