import { describe, expect, test } from "vitest";
import { statusOf } from "../kube/stub-server.ts";
import {
  agentsTable,
  clusterOf,
  fleetRig,
  NODES_PATH,
  nodesTable,
  PODS_PATH,
  REPORTS_PATH,
  reportObject,
  reportsOf,
} from "./fleet-rig.ts";

const HAUNTED = {
  verdict: "ghosts",
  worstClass: "libcni-result-cache-corrupt",
  totals: { findings: 3, blockedPods: 2 },
  classes: [
    { class: "libcni-result-cache-corrupt", count: 2 },
    { class: "shim-leak", count: 1 },
  ],
  blockedPods: ["shop/web-0", "shop/web-1"],
  podCreation: { able: "no", since: new Date(Date.now() - 4 * 60_000).toISOString() },
};

const CLUSTER = clusterOf({
  nodes: [
    ["n1", "Ready"],
    ["n2", "Ready"],
    ["n3", "Ready"],
    ["n4", "NotReady"],
  ],
  agents: [
    ["n1", "1/1"],
    ["n2", "1/1"],
    ["n4", "0/1"],
  ],
  reports: [reportObject("n1"), reportObject("n2", HAUNTED), reportObject("n4")],
});
const HEALTHY = clusterOf({ reports: [reportObject("n1", { podCreation: { able: "yes" } })] });

describe("unghost fleet scan", () => {
  test("lists every node, the worst first; a node without a current report is unknown", async () => {
    const { fleet } = await fleetRig(CLUSTER);

    const { code, stdout, stderr } = await fleet("scan");

    expect(stdout.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
      ["NODE", "VERDICT", "FINDINGS", "BLOCKED", "PODS START", "STATUS", "AGENT"],
      [
        "n2",
        "ghosts",
        "2 libcni-result-cache-corrupt, 1 shim-leak",
        "2",
        expect.stringMatching(/^no, for 4m\d*s?$/),
        "Ready",
        "ready",
      ],
      ["n3", "unknown", "-", "-", "-", "Ready", "none"],
      ["n4", "unknown (stale)", "0", "0", "-", "NotReady", "not ready"],
      ["n1", "healthy", "0", "0", "-", "Ready", "ready"],
      [""],
    ]);
    expect([code, stderr.split("\n")]).toEqual([
      1,
      [
        "No ready agent on 2 nodes: n3, n4. To scan by a privileged one-shot pod: unghost fleet scan --without-agents n3 n4",
        "1 of 4 nodes with ghosts, 2 unknown, 2 pods blocked",
        "",
      ],
    ]);
  });

  test.each([
    ["0 when every node is healthy", HEALTHY, [], 0],
    ["1 when a named node has ghosts", CLUSTER, ["n2"], 1],
    ["2 when a named node has no agent", CLUSTER, ["n3"], 2],
    ["2 when a named node does not exist", HEALTHY, ["n1", "n9"], 2],
    ["2 when there is no node", { ...HEALTHY, [NODES_PATH]: nodesTable() }, [], 2],
  ])("exits %s", async (_title, answers, names, code) => {
    const { fleet } = await fleetRig(answers);

    expect(await fleet("scan", ...names)).toMatchObject({ code });
  });

  test("selects by labels and by one name on the server", async () => {
    const rig = await fleetRig(HEALTHY);

    await rig.fleet("scan", "n1", "-l", "pool=edge,zone!=a");

    const queries = new Map(rig.server.asked.map(({ path, query }) => [path, query]));
    expect(queries.get(NODES_PATH)?.get("labelSelector")).toBe("pool=edge,zone!=a");
    expect(queries.get(NODES_PATH)?.get("fieldSelector")).toBe("metadata.name=n1");
    expect(queries.get(REPORTS_PATH)?.get("fieldSelector")).toBe("metadata.name=n1");
    expect(queries.get(PODS_PATH)?.get("fieldSelector")).toBe("spec.nodeName=n1");
  });

  test.each([
    ["all reports from the server's cache", [], "0"],
    ["the report of one node from etcd", ["n1"], null],
  ])("reads %s", async (_title, names, version) => {
    const rig = await fleetRig(HEALTHY);

    await rig.fleet("scan", ...names);

    const asked = rig.server.asked.filter(({ path }) => path === REPORTS_PATH);
    expect(asked.map(({ query }) => query.get("resourceVersion"))).toEqual([version]);
  });

  test("needs three requests", async () => {
    const rig = await fleetRig(CLUSTER);
    await rig.fleet("scan");

    expect(rig.server.asked.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual([
      `GET ${NODES_PATH}`,
      `GET ${PODS_PATH}`,
      `GET ${REPORTS_PATH}`,
    ]);
  });

  test("accepts a recent report of a node without an agent's pod: an agent installed on the node", async () => {
    const { fleet } = await fleetRig({ ...HEALTHY, [PODS_PATH]: agentsTable() });

    expect(await fleet("scan", "--no-headers")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/on the node\n$/),
    });
  });

  test("takes a report of two hours ago without an agent's pod as unknown", async () => {
    const old = reportObject("n1", { observedAt: new Date(Date.now() - 2 * 3_600_000).toISOString() });
    const { fleet } = await fleetRig({ ...HEALTHY, [PODS_PATH]: agentsTable(), [REPORTS_PATH]: reportsOf(old) });

    expect(await fleet("scan")).toMatchObject({ code: 2, stdout: expect.stringContaining("unknown (stale)") });
  });

  test("continues without permission to list pods, and reports what is lost", async () => {
    const { fleet } = await fleetRig(({ path }) =>
      path === PODS_PATH ? statusOf(403, "pods is forbidden") : { body: HEALTHY[path] },
    );

    expect(await fleet("scan")).toMatchObject({ code: 0, stderr: expect.stringContaining("may be up to an hour old") });
  });

  test("in a cluster without the custom resource shows the nodes, and why nothing is known", async () => {
    const { [REPORTS_PATH]: _, ...answers } = CLUSTER;
    const { fleet } = await fleetRig(answers);

    expect(await fleet("scan")).toMatchObject({
      code: 2,
      stdout: expect.stringContaining("n1    unknown"),
      stderr: expect.stringContaining("GhostReport is not installed in this cluster"),
    });
  });

  test("one report of another structure hides only itself", async () => {
    const odd = { ...reportObject("n1"), status: { verdict: "cursed" } };
    const { fleet } = await fleetRig({ ...CLUSTER, [REPORTS_PATH]: reportsOf(odd, reportObject("n2", HAUNTED)) });

    const { stdout } = await fleet("scan");

    expect(stdout).toMatch(/n1 +unknown .* other version/);
    expect(stdout).toMatch(/n2 +ghosts/);
  });

  test("escapes terminal sequences in what others wrote", async () => {
    const evil = { ...HAUNTED, classes: [{ class: "x\u001b]0;owned\u0007", count: 3 }], blockedPods: ["a/\u001b[2J"] };
    const { fleet } = await fleetRig({ ...CLUSTER, [REPORTS_PATH]: reportsOf(reportObject("n2", evil)) });

    for (const output of [
      "table",
      "wide",
      "json",
      "yaml",
      "jsonpath={.items[*].report}",
      "custom-columns=C:.report.classes",
    ]) {
      const { stdout } = await fleet("scan", "-o", output);
      expect([output, stdout.includes("\u001b"), stdout.includes("\u0007")]).toEqual([output, false, false]);
    }
  });
});

describe("output formats of unghost fleet scan", () => {
  test.each([
    ["name", "node/n2\nnode/n3\nnode/n4\nnode/n1\n"],
    ["jsonpath={.items[0].node} {.totals.ghosts}", "n2 1"],
    ['jsonpath={range .items[*]}{.node}={.verdict}{"\\n"}{end}', "n2=ghosts\nn3=unknown\nn4=unknown\nn1=healthy\n"],
    ['jsonpath={.items[?(@.verdict=="ghosts")].report.blockedPods[1]}', "shop/web-1"],
    [
      "custom-columns=NODE:.node,CLASS:.report.worstClass",
      "NODE   CLASS\nn2     libcni-result-cache-corrupt\nn3     <none>\nn4     <none>\nn1     <none>\n",
    ],
  ])("-o %s", async (output, expected) => {
    const { fleet } = await fleetRig(CLUSTER);

    expect((await fleet("scan", "-o", output)).stdout).toBe(expected);
    expect((await fleet("scan", `-o=${output}`)).stdout).toBe(expected);
  });

  test("-o json has one document with totals and items", async () => {
    const { fleet } = await fleetRig(CLUSTER);

    expect(JSON.parse((await fleet("scan", "-ojson")).stdout)).toMatchObject({
      apiVersion: "unghost.dev/v1",
      kind: "FleetReport",
      totals: { nodes: 4, ghosts: 1, degraded: 0, unknown: 2, healthy: 1, findings: 3, blockedPods: 2 },
      items: [
        { node: "n2", verdict: "ghosts", agent: "ready", report: { worstClass: "libcni-result-cache-corrupt" } },
        {},
        {},
        {},
      ],
    });
  });

  test("--no-headers leaves headings and summary out, also of custom columns", async () => {
    const { fleet } = await fleetRig(HEALTHY);

    expect(await fleet("scan", "--no-headers")).toMatchObject({ stdout: expect.stringMatching(/^n1 /), stderr: "" });
    expect((await fleet("scan", "--no-headers", "-o", "custom-columns=N:.node")).stdout).toBe("n1\n");
  });

  test.each([
    ["go-template={{.}}", "go-template is not supported"],
    ["xml", 'got "xml"'],
    ["jsonpath={.items", "has no closing brace"],
    ["jsonpath={range .items[*]}{.node}", "{range} has no {end}"],
    ["jsonpath={.items[?(@.a=~1)]}", "is not supported"],
    ["custom-columns=NODE", "is not HEADING:.PATH"],
  ])("-o %s is refused before the cluster is asked", async (output, message) => {
    const rig = await fleetRig(HEALTHY);

    expect(await rig.fleet("scan", "-o", output)).toMatchObject({ code: 64, stderr: expect.stringContaining(message) });
    expect(rig.server.asked).toEqual([]);
  });
});
