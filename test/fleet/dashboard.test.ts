import { request } from "node:http";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { chosenRows, fleetNotices, fleetVerdict } from "../../src/agent/page/fleet-verdict.ts";
import { PAGE } from "../../src/agent/page/gen/dashboard.ts";
import { chooseCluster } from "../../src/fleet/cluster-access.ts";
import { readDashboard } from "../../src/fleet/dashboard/read.ts";
import { type DashboardOptions, openDashboard } from "../../src/fleet/dashboard/server.ts";
import { openApi } from "../../src/kube/api.ts";
import type { FleetRow, FleetState } from "../../src/report/fleet-state.ts";
import { listOf, statusOf } from "../kube/stub-server.ts";
import {
  agentsTable,
  fleetRig,
  NODES_PATH,
  nodesTable,
  PODS_PATH,
  REPORTS_PATH,
  reportObject,
  reportsOf,
} from "./fleet-rig.ts";

const HEALS_PATH = "/apis/unghost.dev/v1alpha1/ghostheals";
const LEASES_PATH = "/apis/coordination.k8s.io/v1/namespaces/unghost/leases";
const NONE: FleetState = {
  version: "1",
  cluster: "api.example:6443",
  nodes: [],
  classes: [],
  blockedPods: [],
  heals: [],
  onHold: [],
  problems: [],
};
const row = (name: string, more: Partial<FleetRow> = {}): FleetRow => ({
  name,
  verdict: "healthy",
  isStale: false,
  status: "Ready",
  agent: "ready",
  classes: [],
  blocked: 0,
  ...more,
});

describe("what the dashboard reads", () => {
  const UNHEALTHY = {
    verdict: "ghosts",
    totals: { findings: 2, blockedPods: 1 },
    classes: [{ class: "libcni-result-cache-corrupt", count: 2 }],
    blockedPods: ["shop/web-0"],
    notHealing: "half of the fleet is unhealthy",
    findings: [
      {
        class: "libcni-result-cache-corrupt",
        severity: "critical",
        summary: "x",
        pod: "shop/web-0",
        blocks: 1,
        standing: "healing",
      },
    ],
  };
  const lease = (name: string, holderIdentity: string) => ({ metadata: { name }, spec: { holderIdentity } });

  async function read(more: Readonly<Record<string, unknown>>) {
    const answers: Readonly<Record<string, unknown>> = {
      [NODES_PATH]: nodesTable(["n1", "Ready"], ["n2", "NotReady"]),
      [REPORTS_PATH]: reportsOf(reportObject("n1", UNHEALTHY), reportObject("n2")),
      ...more,
    };
    const rig = await fleetRig(({ path, query }) => {
      if (path === PODS_PATH) {
        const isOne = query.get("limit") === "1";
        return { body: isOne ? listOf([{ metadata: { namespace: "unghost" } }]) : agentsTable(["n1", "1/1"]) };
      }
      return path in answers ? { body: answers[path] } : statusOf(404, `${path} not found`);
    });
    const { access } = await chooseCluster({ kubeconfig: rig.kubeconfig }, {});
    const api = openApi(access, { timeoutMs: 30_000 });
    onTestFinished(() => api.close());
    return { rig, state: await readDashboard(api, new Date()) };
  }

  test("nodes, classes, blocked pods, running heals, slots, and why nothing is healed", async () => {
    const { state, rig } = await read({
      [HEALS_PATH]: listOf([
        { metadata: {}, spec: { node: "n2", requestedBy: "jane\u001b[2J" } },
        { metadata: {}, spec: { node: "n2" }, status: { outcome: "healed" } },
        { metadata: {}, spec: { node: "n2", dryRun: true } },
      ]),
      [LEASES_PATH]: listOf([lease("unghost-heal-0", "n1"), lease("unghost-heal-1", ""), lease("other", "n2")]),
    });

    expect(state).toMatchObject({
      nodes: [
        { name: "n1", verdict: "ghosts", isStale: false, blocked: 1 },
        { name: "n2", verdict: "unknown", isStale: false, agent: "no-pod" },
      ],
      classes: [{ id: "libcni-result-cache-corrupt", nodes: 1, findings: 2 }],
      blockedPods: [{ pod: "shop/web-0", node: "n1" }],
      heals: [
        { node: "n2", by: expect.not.stringContaining("\u001b") },
        { node: "n1", what: "libcni-result-cache-corrupt shop/web-0" },
      ],
      onHold: [{ message: "half of the fleet is unhealthy", nodes: ["n1"] }],
      slots: [
        { name: "unghost-heal-0", holder: "n1" },
        { name: "unghost-heal-1", holder: "" },
      ],
      problems: [],
    });
    expect(rig.server.asked).toHaveLength(6);
  });

  test("says what it may not read, and shows the rest", async () => {
    const { state } = await read({ [HEALS_PATH]: listOf([]) });

    expect(state.slots).toBeUndefined();
    expect(state.problems).toEqual([expect.stringMatching(/^slots of the fleet: /)]);
    expect(state.nodes).toHaveLength(2);
  });
});

async function served(options: Partial<DashboardOptions> = {}) {
  const read = () => Promise.resolve({ ...NONE, readAt: "2026-03-01T12:00:00.000Z", nodes: [row("n1")] });
  const dashboard = await openDashboard({ port: 0, page: PAGE, first: NONE, read, everyMs: 10, ...options });
  onTestFinished(() => dashboard.close());
  return dashboard;
}

interface Answered {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

function ask(url: string, { host, method = "GET" }: { readonly host?: string; readonly method?: string } = {}) {
  return new Promise<Answered>((resolve, reject) => {
    const headers = host === undefined ? {} : { host };
    const sent = request(url, { method, headers }, (response) => {
      let body = "";
      response.on("data", (chunk: Buffer) => (body += chunk.toString()));
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, body }));
    });
    sent.on("error", reject);
    sent.end();
  });
}

/** The states that a page is sent. */
async function events(address: string) {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const response = await fetch(`${address}/api/events`, { signal: stop.signal });
  let text = "";
  const seen = (): readonly FleetState[] =>
    text
      .split("\n\n")
      .filter((frame) => frame.startsWith("data: "))
      .slice(0, text.endsWith("\n\n") ? undefined : -1)
      .map((frame) => JSON.parse(frame.slice(6)) as FleetState);
  const reading = async () => {
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString();
  };
  reading().catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });
  return { seen, stop };
}

const PATIENCE = { timeout: 60_000, interval: 20 };

describe("the dashboard's server", () => {
  test("answers to loopback names only, reads only, and lets the page load nothing", async () => {
    const { address } = await served();

    const page = await ask(`${address}/`);
    expect([page.status, page.body]).toEqual([200, PAGE.html]);
    expect(page.headers["content-security-policy"]).toMatch(/^default-src 'none'; script-src 'sha256-/);
    expect(page.headers).not.toHaveProperty("access-control-allow-origin");
    for (const host of ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "[::2]", "10.0.0.1"])
      expect((await ask(`${address}/api/state`, { host })).status).toBe(421);
    for (const host of ["localhost:1", "127.0.0.1", "[::1]:80", "LOCALHOST"])
      expect((await ask(`${address}/api/state`, { host })).status).toBe(200);
    for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
      expect((await ask(`${address}/`, { method })).status).toBe(405);
    expect((await ask(`${address}/other`)).status).toBe(404);
  });

  test("reads the cluster only while a page is open, and sends what has changed", async () => {
    let reads = 0;
    const read = () => Promise.resolve({ ...NONE, readAt: `${reads++}`, nodes: [row(reads < 3 ? "n1" : "n2")] });
    const { address } = await served({ read });
    await ask(`${address}/api/state`);
    expect(reads).toBe(0);

    const { seen } = await events(address);

    await vi.waitUntil(() => seen().length >= 3, PATIENCE);
    expect(seen().map(({ nodes }) => nodes.map(({ name }) => name))).toEqual([[], ["n1"], ["n2"]]);
  });

  test("keeps what it has when the cluster stops answering, and says so", async () => {
    let reads = 0;
    const read = () =>
      reads++ === 0
        ? Promise.resolve({ ...NONE, readAt: "2026-03-01T12:00:00.000Z", nodes: [row("n1")] })
        : Promise.reject(new Error("connection refused"));
    const { address } = await served({ read });

    const { seen } = await events(address);

    await vi.waitUntil(() => seen().at(-1)?.trouble !== undefined, PATIENCE);
    expect(seen().at(-1)).toMatchObject({ trouble: expect.stringContaining("refused"), nodes: [{ name: "n1" }] });
  });

  test("takes neither names, labels nor a port that is none", async () => {
    const { fleet } = await fleetRig({});

    for (const wrong of ["n1", "--selector=a=b", "--port=70000"])
      expect(await fleet("dashboard", wrong)).toMatchObject({ code: 64 });
  });

  test("says how to choose another port", async () => {
    const { address } = await served();

    await expect(served({ port: Number(new URL(address).port) })).rejects.toThrow(/--port=0/);
  });
});

describe("the words of the dashboard", () => {
  test.each([
    [undefined, "unsure", "Connecting"],
    [{ ...NONE, trouble: "refused" }, "unsure", "The cluster does not answer"],
    [{ ...NONE, readAt: "x" }, "unsure", "No nodes"],
    [{ ...NONE, readAt: "x", nodes: [row("a")] }, "good", "No ghosts"],
    [{ ...NONE, readAt: "x", nodes: [row("a"), row("b", { verdict: "unknown" })] }, "unsure", "1 of 2 nodes unknown"],
    [{ ...NONE, readAt: "x", nodes: [row("a", { verdict: "degraded" })] }, "bad", "1 of 1 node degraded"],
    [
      { ...NONE, readAt: "x", nodes: [row("a", { verdict: "degraded" }), row("b", { verdict: "ghosts" })] },
      "bad",
      "1 of 2 nodes with ghosts",
    ],
  ] as const)("%o is %s: %s", (state, tone, headline) => {
    expect(fleetVerdict(state)).toMatchObject({ tone, headline });
  });

  test("notices name the first nodes", () => {
    const nodes = ["a", "b", "c", "d", "e", "f", "g"];

    expect(fleetNotices({ ...NONE, onHold: [{ message: "paused", nodes }], problems: ["p"] })).toEqual([
      { title: "Healing is on hold: a, b, c, d, e and 2 more", text: "paused" },
      { title: "Not read", text: "p" },
    ]);
  });

  test("nodes are chosen by name and class", () => {
    const nodes = [row("edge-1", { classes: [{ class: "x", count: 1 }] }), row("edge-2"), row("core-1")];
    const named = (text: string, classId?: string) => chosenRows(nodes, { text, classId }).map(({ name }) => name);

    expect([named(" EDGE "), named("", "x"), named("2", "x")]).toEqual([["edge-1", "edge-2"], ["edge-1"], []]);
  });
});
