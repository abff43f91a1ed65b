import { existsSync, readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { startCluster } from "../../lab/cluster/cluster.ts";
import type { ClusterNode } from "../../lab/cluster/cluster-node.ts";
import { kubeconfig } from "../../lab/cluster/kubeconfig.ts";
import { isReady, podObjects } from "../../lab/cluster/objects.ts";
import { until } from "../../lab/poll.ts";
import { UNGHOST } from "../e2e/unghost.ts";
import { installChart } from "./agent-pod.ts";
import { HANG_GUARD_MS, WAIT_MS } from "./lab-cluster.ts";
import { makeGhost } from "./pod-ghost.ts";

const OPERATOR = "/etc/unghost/operator";
const CLASS = "libcni-result-cache-corrupt";
const NO_SUCH_PLAN = `sha256:${"0".repeat(64)}`;

interface Healed {
  readonly items: readonly {
    readonly node: string;
    readonly outcome: string;
    readonly actions?: readonly { readonly pod?: string; readonly outcome: string; readonly journalId?: string }[];
  }[];
}

function journalOf({ lab }: ClusterNode): string {
  const path = lab.path("/var/lib/unghost/journal");
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

test(
  "an operator lets the agent in a pod heal its node by the plan that was shown, while another node is NotReady",
  async () => {
    const story = await startCluster({ nodes: 2, runtime: "1.6", kubelet: { runtimeRequestTimeout: "5s" } });
    onTestFinished(() => story.destroy());
    const [node, second] = story.nodes;
    if (second === undefined || node === undefined) throw new Error("the story needs two nodes");
    // The agents only observe: what is healed was asked for.
    await installChart(story, "mode=observe");
    const { server, authority } = story.controlPlane;
    await second.lab.writeFile(OPERATOR, kubeconfig(server, authority.cert, authority.issue("/CN=jane")), 0o600);
    for (const role of ["unghost-viewer", "unghost-healer"])
      await story.kubectl("create", "clusterrolebinding", role, `--clusterrole=${role}`, "--user=jane");
    const fleet = (...args: readonly string[]) =>
      second.lab.exec([UNGHOST, "fleet", ...args, `--kubeconfig=${OPERATOR}`], { timeoutMs: WAIT_MS });
    await story.apply(podObjects(["web-0"], node.name));
    await story.waitForPods(1, isReady);
    await second.kubelet.end("KILL");
    await until("the other node is NotReady", WAIT_MS, async () => {
      const { stdout } = await fleet("scan", second.name, "-o", "jsonpath={.items[0].nodeStatus}");
      return stdout.startsWith("NotReady") ? true : undefined;
    });

    await makeGhost(node, "web-0");
    await until("the ghost is in the fleet's scan", WAIT_MS, async () => {
      const { stdout } = await fleet("scan", node.name, "-o", "jsonpath={.items[0].verdict}");
      return stdout === "ghosts" ? true : undefined;
    });

    const shown = await fleet("heal", node.name, "--dry-run");
    expect([shown.code, shown.stderr]).toEqual([1, ""]);
    expect(shown.stdout).toContain("Plan: heal 1 ghost on ");
    expect(shown.stdout).toContain(CLASS);
    expect(journalOf(node)).toBe("");

    const asked = await fleet("heal", node.name);
    expect([asked.code, asked.stdout.includes("no terminal")]).toEqual([3, true]);
    const spec = { node: node.name, requestedBy: "root", planDigest: NO_SUCH_PLAN };
    await story.apply([{ apiVersion: "unghost.dev/v1alpha1", kind: "GhostHeal", metadata: { name: "other" }, spec }]);
    const refused = await until("the request is answered", WAIT_MS, async () => {
      const printed = await story.kubectl(
        "get",
        "ghostheal",
        "other",
        "-o=jsonpath={.spec.requestedBy} {.status.code}",
      );
      return /\S \S/.test(printed) ? printed : undefined;
    });
    expect(refused).toMatch(/^(?!root ).+ plan-changed$/);
    expect(journalOf(node)).toBe("");

    const startedAt = performance.now();
    const healed = await fleet("heal", node.name, "--yes", "-o", "json");
    console.log(`healed by request in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
    const { items } = JSON.parse(healed.stdout) as Healed;
    expect(items).toMatchObject([{ node: node.name, outcome: "healed", actions: [{ pod: "default/web-0" }] }]);
    const ids = items.flatMap(({ actions = [] }) => actions.flatMap(({ journalId = [] }) => journalId));
    expect(ids).toHaveLength(1);
    expect(journalOf(node)).toContain(ids[0]);
    expect(healed.code).toBe(0);
    await story.waitForPods(1, isReady);
  },
  HANG_GUARD_MS,
);
