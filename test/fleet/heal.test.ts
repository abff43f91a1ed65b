import { describe, expect, test } from "vitest";
import type { Asked, Reply } from "../kube/stub-server.ts";
import { statusOf } from "../kube/stub-server.ts";
import { clusterOf, type FleetRig, fleetRig, NODES_PATH, reportObject } from "./fleet-rig.ts";

const HEALS_PATH = "/apis/unghost.dev/v1alpha1/ghostheals";
const SELF_PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const DIGEST = `sha256:${"a".repeat(64)}`;
const PLANNED = {
  outcome: "planned",
  verdict: "ghosts",
  planDigest: DIGEST,
  plan: "Plan: heal 1 ghost on n2\nlibcni-result-cache-corrupt: quarantine\u001b[2J the file\n",
  totals: { planned: 1, healed: 0, left: 1 },
};
const HEALED = {
  outcome: "healed",
  verdict: "healthy",
  totals: { planned: 1, healed: 1, left: 0 },
  actions: [
    {
      finding: "libcni-result-cache-corrupt/abc",
      class: "libcni-result-cache-corrupt",
      pod: "shop/web-0",
      outcome: "healed",
      journalId: "0kq3v8x2m1abcd",
      seconds: 0.4,
    },
  ],
};
const UNHEALTHY = { verdict: "ghosts", totals: { findings: 1, blockedPods: 1 } };

interface Spec {
  readonly node: string;
  readonly dryRun: boolean;
  readonly planDigest?: string;
}

interface Cluster extends FleetRig {
  /** The specs of the requests that were made, in order. */
  readonly specs: () => readonly Spec[];
  readonly deleted: () => readonly string[];
}

/** Three nodes; the agents of n1 and n2 answer at once. */
async function cluster(answerTo: (spec: Spec) => object | undefined): Promise<Cluster> {
  const specs: Spec[] = [];
  const objects = new Map<string, object>();
  const fixed: Readonly<Record<string, unknown>> = {
    ...clusterOf({
      nodes: [
        ["n1", "Ready"],
        ["n2", "Ready"],
        ["n3", "NotReady"],
      ],
      agents: [
        ["n1", "1/1"],
        ["n2", "1/1"],
      ],
      reports: [reportObject("n1"), reportObject("n2", UNHEALTHY)],
    }),
    [SELF_PATH]: { status: { userInfo: { username: "jane" } } },
  };
  const reply = ({ method, path, body }: Asked): Reply => {
    const [, node] = /^\/api\/v1\/nodes\/(n\d)$/.exec(path) ?? [];
    if (node !== undefined) return { body: { metadata: { name: node, uid: `uid-${node}` } } };
    if (method === "POST" && path === HEALS_PATH) {
      const { spec } = body as { readonly spec: Spec };
      specs.push(spec);
      const name = `${spec.node}-x${specs.length}`;
      const metadata = { name, resourceVersion: "1", creationTimestamp: new Date().toISOString() };
      const object = { metadata, spec, status: answerTo(spec) };
      objects.set(`${HEALS_PATH}/${name}`, object);
      return { status: 201, body: object };
    }
    if (objects.has(path)) return { body: objects.get(path) };
    return path in fixed ? { body: fixed[path] } : statusOf(404, `${path} not found`);
  };
  const rig = await fleetRig(reply);
  return {
    ...rig,
    specs: () => specs,
    deleted: () => rig.server.asked.flatMap(({ method, path }) => (method === "DELETE" ? [path] : [])),
  };
}

const usual = ({ dryRun }: Spec) => ({ startedAt: "2026-03-01T12:00:00Z", ...(dryRun ? PLANNED : HEALED) });

describe("unghost fleet heal", () => {
  test("shows the plan, heals exactly that plan with --yes, and prints the ids of the journal", async () => {
    const { fleet, specs, server } = await cluster(usual);

    const { code, stdout } = await fleet("heal", "n2", "--yes");

    expect(specs()).toMatchObject([
      { node: "n2", dryRun: true, requestedBy: "jane", columns: 100 },
      { node: "n2", dryRun: false, planDigest: DIGEST },
    ]);
    expect(stdout).toMatch(/^Plan: heal 1 ghost on n2\n/);
    expect(stdout).toContain("0kq3v8x2m1abcd");
    expect(stdout).toContain("n2: 1 healed, nothing left");
    expect(stdout).not.toContain("\u001b");
    expect(code).toBe(0);
    const [made] = server.asked.filter(({ method, path }) => method === "POST" && path === HEALS_PATH);
    expect(made?.body).toMatchObject({
      metadata: { generateName: "n2-", ownerReferences: [{ kind: "Node", name: "n2", uid: "uid-n2" }] },
    });
  });

  test("changes nothing without --yes where there is no terminal", async () => {
    const { fleet, specs } = await cluster(usual);

    const { code, stdout } = await fleet("heal", "n2");

    expect(specs().map(({ dryRun }) => dryRun)).toEqual([true]);
    expect([code, stdout.includes("Add --yes")]).toEqual([3, true]);
  });

  test("stops at the plans with --dry-run", async () => {
    const { fleet, specs } = await cluster(usual);

    expect(await fleet("heal", "n2", "--dry-run")).toMatchObject({ code: 1 });
    expect(specs()).toHaveLength(1);
  });

  test("asks one node after the other, the worst first", async () => {
    const { fleet, specs } = await cluster(usual);

    await fleet("heal", "n1", "n2", "--yes");

    expect(specs().map(({ node, dryRun }) => [node, dryRun])).toEqual([
      ["n2", true],
      ["n2", false],
      ["n1", true],
      ["n1", false],
    ]);
  });

  test("with labels asks the nodes that are not healthy; one without an agent gets a sentence", async () => {
    const { fleet, specs } = await cluster(usual);

    const { code, stdout } = await fleet("heal", "-l", "pool=edge", "--yes");

    expect(new Set(specs().map(({ node }) => node))).toEqual(new Set(["n2"]));
    expect(stdout).toContain("No agent of unghost runs on this node.");
    expect(stdout.replaceAll(/\s+/g, " ")).toContain("run unghost heal");
    expect(stdout).toContain("--without-agents");
    expect(code).toBe(2);
  });

  test("hands targets and a namespace to the node", async () => {
    const { fleet, specs } = await cluster(usual);

    await fleet("heal", "n2", "--yes", "--target", "shop/web-0", "-n", "shop");

    for (const spec of specs()) expect(spec).toMatchObject({ targets: ["shop/web-0"], namespaces: ["shop"] });
  });

  test.each([
    [{ outcome: "refused", code: "plan-changed", message: "Another plan holds.", next: "Ask again." }, 3],
    [{ outcome: "incomplete", verdict: "ghosts", totals: { planned: 1, healed: 0, left: 1 }, left: ["x"] }, 1],
    [{ outcome: "unknown", code: "interrupted", message: "The agent ended." }, 2],
  ])("prints %o, exit code %i", async (answer, code) => {
    const { fleet } = await cluster((spec) => (spec.dryRun ? usual(spec) : { ...answer, startedAt: "x" }));

    const ran = await fleet("heal", "n2", "--yes");

    expect(ran.code).toBe(code);
    if ("message" in answer) expect(ran.stdout).toContain(answer.message);
  });

  test("asks no further node while the fleet's breaker is open", async () => {
    const refused = { startedAt: "x", outcome: "refused", code: "breaker", message: "Half of the fleet is unhealthy." };
    const { fleet, specs } = await cluster((spec) => (spec.dryRun ? usual(spec) : refused));

    const { code, stderr } = await fleet("heal", "n1", "n2", "--yes");

    expect(specs().map(({ node }) => node)).toEqual(["n2", "n2"]);
    expect([code, stderr]).toEqual([3, expect.stringContaining("1 node not asked")]);
  });

  test("prints one document with -o json, which needs --yes or --dry-run", async () => {
    const { fleet } = await cluster(usual);

    expect(await fleet("heal", "n2", "-o", "json")).toMatchObject({ code: 64 });
    const { stdout } = await fleet("heal", "n2", "-o", "json", "--yes");
    expect(JSON.parse(stdout)).toMatchObject({
      kind: "FleetHeal",
      items: [{ node: "n2", outcome: "healed", request: "n2-x2", actions: [{ journalId: "0kq3v8x2m1abcd" }] }],
    });
  });

  test("refuses --allow where an agent decides about manual classes", async () => {
    const { fleet, specs } = await cluster(usual);

    const { code, stdout } = await fleet("heal", "n2", "--yes", "--allow=shim-leak");

    expect([code, specs()]).toEqual([3, []]);
    expect(stdout).toContain("agent.classes");
  });

  test("needs nodes or labels", async () => {
    const { fleet } = await cluster(usual);

    expect(await fleet("heal", "--yes")).toMatchObject({ code: 64 });
  });

  test("names the role where the operator may not ask", async () => {
    const rig = await fleetRig(({ path, method }) =>
      method === "POST" && path === HEALS_PATH ? statusOf(403, "ghostheals is forbidden") : { body: bodyFor(path) },
    );

    const { code, stdout } = await rig.fleet("heal", "n2", "--yes");

    expect(code).toBe(2);
    expect(stdout).toContain("unghost-healer");
  });
});

const ONE_NODE = clusterOf({
  nodes: [["n2", "Ready"]],
  agents: [["n2", "1/1"]],
  reports: [reportObject("n2", UNHEALTHY)],
});

function bodyFor(path: string): unknown {
  if (path === `${NODES_PATH}/n2`) return { metadata: { name: "n2", uid: "u" } };
  return ONE_NODE[path] ?? { status: { userInfo: { username: "jane" } } };
}
