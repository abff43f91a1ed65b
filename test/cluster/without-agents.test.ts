import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { ClusterNode } from "../../lab/cluster/cluster-node.ts";
import { kubeconfig } from "../../lab/cluster/kubeconfig.ts";
import { isReady, podObjects } from "../../lab/cluster/objects.ts";
import { importUnghostImage } from "../../lab/cluster/unghost-image.ts";
import { until } from "../../lab/poll.ts";
import { UNGHOST } from "../e2e/unghost.ts";
import { HANG_GUARD_MS, sharedCluster, WAIT_MS } from "./lab-cluster.ts";
import { makeGhost } from "./pod-ghost.ts";

// containerd 1.6 cannot stop a sandbox with a torn cached result.
const story = sharedCluster({ nodes: 2, runtime: "1.6" });
const OPERATOR = "/etc/unghost/operator";

interface Scanned {
  readonly items: readonly {
    readonly node: string;
    readonly verdict: string;
    readonly oneShot?: { readonly code: string; readonly message?: string; readonly next?: string };
    readonly report?: { readonly worstClass?: string; readonly blockedPods?: readonly string[] };
  }[];
}

function bothNodes() {
  const [haunted, other] = story().nodes;
  if (haunted === undefined || other === undefined) throw new Error("the story needs two nodes");
  return { haunted, other };
}

/** An operator with the two roles, on a machine that reaches the API server and is not scanned. */
async function operator() {
  const { server, authority } = story().controlPlane;
  const { lab } = bothNodes().other;
  await lab.writeFile(OPERATOR, kubeconfig(server, authority.cert, authority.issue("/CN=jane")), 0o600);
  for (const role of ["viewer", "one-shot"]) await story().apply(readFileSync(`deploy/rbac/${role}.yaml`, "utf8"));
  const apiGroup = "rbac.authorization.k8s.io";
  const binding = (kind: string, role: string, namespace?: string) => ({
    apiVersion: `${apiGroup}/v1`,
    kind,
    metadata: { name: `jane-${role}`, namespace },
    roleRef: { apiGroup, kind: "ClusterRole", name: role },
    subjects: [{ apiGroup, kind: "User", name: "jane" }],
  });
  await story().apply([
    binding("ClusterRoleBinding", "unghost-viewer"),
    binding("RoleBinding", "unghost-one-shot", "kube-system"),
    binding("RoleBinding", "unghost-one-shot", "guarded"),
  ]);
  return lab;
}

type Machine = Awaited<ReturnType<typeof operator>>;

const SCAN = [UNGHOST, "fleet", "scan", "--without-agents", `--kubeconfig=${OPERATOR}`, "-o", "json"];

async function scan(machine: Machine, ...args: readonly string[]): Promise<Scanned["items"]> {
  const { stdout, stderr } = await machine.exec([...SCAN, ...args], { timeoutMs: WAIT_MS });
  if (stdout === "") throw new Error(`unghost fleet scan: ${stderr}`);
  return (JSON.parse(stdout) as Scanned).items;
}

interface Healed {
  readonly items: readonly {
    readonly outcome: string;
    readonly actions?: readonly { readonly journalId?: string }[];
  }[];
}

const HEAL = [UNGHOST, "fleet", "heal", `--kubeconfig=${OPERATOR}`];

async function heal(machine: Machine, ...args: readonly string[]) {
  const { code, stdout, stderr } = await machine.exec([...HEAL, "-o", "json", ...args], { timeoutMs: WAIT_MS });
  if (stdout === "") throw new Error(`unghost fleet heal: ${stderr}`);
  return { code, stderr, items: (JSON.parse(stdout) as Healed).items };
}

function journalOf({ lab }: ClusterNode): string {
  const path = lab.path("/var/lib/unghost/journal");
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

async function nothingIsLeft(namespace: string): Promise<void> {
  await until(`no Job and no pod is left in ${namespace}`, WAIT_MS, async () => {
    const left = await story().kubectl("get", "jobs,pods", `--namespace=${namespace}`, "-o=name");
    return left === "" ? true : undefined;
  });
}

test(
  "a node without an agent is scanned and healed by one-shot pods, which leave nothing behind; what refuses a pod is named",
  async () => {
    await story().apply([
      {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: "guarded", labels: { "pod-security.kubernetes.io/enforce": "baseline" } },
      },
    ]);
    const machine = await operator();
    const { haunted, other } = bothNodes();
    await importUnghostImage(haunted);
    await story().apply(podObjects(["web-0"], haunted.name));
    await story().waitForPods(1, isReady);
    await makeGhost(haunted, "web-0");

    const found = await until("the scan finds the ghost", WAIT_MS, async () => {
      const [item] = await scan(machine, haunted.name);
      return item?.verdict === "ghosts" ? item : undefined;
    });
    expect(found).toMatchObject({
      oneShot: { code: "scanned" },
      report: { worstClass: "libcni-result-cache-corrupt", blockedPods: ["default/web-0"] },
    });
    await nothingIsLeft("kube-system");

    const [refused] = await scan(machine, haunted.name, "-n", "guarded");
    expect(refused?.oneShot).toMatchObject({ code: "pod-security" });
    const [forbidden] = await scan(machine, haunted.name, "-n", "default");
    expect(forbidden?.oneShot).toMatchObject({ code: "forbidden", message: expect.stringContaining("pods") });
    // Its image was imported on the other node only, and no registry serves it.
    const [imageless] = await scan(machine, other.name);
    expect(imageless?.oneShot).toMatchObject({ code: "image", message: expect.stringContaining("ErrImagePull") });
    await nothingIsLeft("kube-system");
    await nothingIsLeft("guarded");

    const planned = await heal(machine, haunted.name, "--dry-run");
    expect(planned.items).toMatchObject([{ outcome: "planned", plan: expect.stringContaining("default/web-0") }]);
    const [guarded] = (await heal(machine, haunted.name, "--yes", "--one-shot-namespace=guarded")).items;
    expect(guarded).toMatchObject({ outcome: "no-answer", code: "pod-security" });
    // Without a terminal there is no consent.
    const mute = await machine.exec([...HEAL, haunted.name], { timeoutMs: WAIT_MS });
    expect([mute.code, mute.stdout]).toEqual([3, expect.stringContaining("no terminal")]);
    expect(journalOf(haunted)).toBe("");

    await other.kubelet.end("KILL");
    await story().waitForCondition(other, "Ready", ({ status }) => status === "Unknown");
    const healed = await heal(machine, haunted.name, "--yes");
    expect([healed.code, healed.items]).toMatchObject([
      0,
      [{ outcome: "healed", actions: [{ pod: "default/web-0" }] }],
    ]);
    const [id = "none"] = healed.items.flatMap(({ actions = [] }) =>
      actions.flatMap(({ journalId = [] }) => journalId),
    );
    expect(journalOf(haunted)).toContain(id);
    expect(healed.stderr).toMatch(/: healed +default\/web-0/);
    await story().waitForPods(1, isReady);
    await nothingIsLeft("kube-system");
    await other.kubelet.start();
  },
  HANG_GUARD_MS,
);

test(
  "a kubelet that is down is named, before and after the node is NotReady; Ctrl-C leaves nothing behind",
  async () => {
    const machine = await operator();
    const { haunted } = bothNodes();
    await haunted.kubelet.end("KILL");

    const interrupted = await machine.exec(["timeout", "--signal=INT", "6", ...SCAN, haunted.name], {
      timeoutMs: WAIT_MS,
    });
    const [before] = (JSON.parse(interrupted.stdout) as Scanned).items;
    expect(before?.oneShot).toMatchObject({ code: "interrupted" });
    await nothingIsLeft("kube-system");

    const [unseen] = await scan(machine, haunted.name);
    expect(unseen?.oneShot).toMatchObject({ code: "kubelet-down", next: `ssh ${haunted.ip} sudo unghost scan` });
    await nothingIsLeft("kube-system");

    await story().waitForCondition(haunted, "Ready", ({ status }) => status === "Unknown");
    const [known] = await scan(machine, haunted.name);
    expect(known?.oneShot).toMatchObject({ code: "kubelet-down", message: expect.stringContaining("NotReady since") });
    await haunted.kubelet.start();
  },
  HANG_GUARD_MS,
);
