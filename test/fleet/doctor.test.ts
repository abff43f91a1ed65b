import { describe, expect, test } from "vitest";
import type { Check, Risk } from "../../src/doctor/doctor-report.ts";
import { type Asked, type Reply, statusOf } from "../kube/stub-server.ts";
import {
  agentsTable,
  fleetRig,
  NODES_PATH,
  PODS_PATH,
  REPORTS_PATH,
  reportObject,
  reportsOf,
  tableOf,
} from "./fleet-rig.ts";

const DISCOVERY = "/apis/unghost.dev/v1alpha1";
const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const POLICIES = `${ADMISSION}/validatingadmissionpolicies`;
const BINDINGS = `${ADMISSION}/validatingadmissionpolicybindings`;
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/unghost/leases";
const REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

type Row = readonly [name: string, status: string, runtime?: string];

function nodes(...rows: readonly Row[]) {
  return tableOf(
    ["Name", "Status", "Container-Runtime"],
    rows.map(([name, status, runtime = "containerd://2.4.1"]) => [name, status, runtime]),
  );
}

function leases(...held: readonly (readonly [name: string, holder: string])[]) {
  return tableOf(
    ["Name", "Holder", "Age"],
    held.map(([name, holder]) => [name, holder, "3d"]),
  );
}

const SERVED = ["ghostreports", "ghostreports/status", "ghostheals", "ghostheals/status"];
const served = (...names: readonly string[]) => ({
  kind: "APIResourceList",
  resources: names.map((name) => ({ name })),
});

const HEALTHY: Readonly<Record<string, unknown>> = {
  [NODES_PATH]: nodes(["n1", "Ready"], ["n2", "Ready"]),
  [PODS_PATH]: agentsTable(["n1", "1/1"], ["n2", "1/1"]),
  [REPORTS_PATH]: reportsOf(reportObject("n1"), reportObject("n2")),
  [DISCOVERY]: served(...SERVED),
  [POLICIES]: tableOf(["Name"], [["unghost-own-node-only"], ["unghost-heal-requests"]]),
  [BINDINGS]: tableOf(
    ["Name", "PolicyName"],
    [
      ["a", "unghost-own-node-only"],
      ["b", "unghost-heal-requests"],
    ],
  ),
  [LEASES]: leases(["unghost-heal-0", ""], ["unghost-heal-1", "n1"], ["other", "gone"]),
};

async function doctor(
  changes: Readonly<Record<string, unknown>> = {},
  denied: (asked: Asked) => boolean = () => false,
) {
  const answers = { ...HEALTHY, ...changes };
  const rig = await fleetRig((asked: Asked): Reply => {
    if (asked.path === REVIEWS) return { body: { status: { allowed: !denied(asked) } } };
    const body = answers[asked.path];
    if (body === "forbidden") return statusOf(403, `${asked.path} is forbidden`);
    return body === undefined ? statusOf(404, `${asked.path} not found`) : { body };
  });
  const { code, stdout, stderr } = await rig.fleet("doctor", "-o", "json");
  const report = JSON.parse(stdout) as { readonly items: readonly Check[]; readonly risks: readonly Risk[] };
  const text = (await rig.fleet("doctor")).stdout;
  return { code, stderr, ...report, text, bad: report.items.filter(({ status }) => status !== "ok") };
}

describe("unghost fleet doctor", () => {
  test("finds everything in place", async () => {
    const { code, stderr, bad, risks, text } = await doctor();

    expect([code, stderr, bad, risks]).toEqual([0, "", [], []]);
    expect(text).toMatch(/^OK {2}everything unghost needs is there in the cluster 127\.0\.0\.1:\d+\n/);
    expect(text).toMatch(/ {2}agents +on 2 nodes\n/);
    expect(text).toMatch(/ {2}slots +held by n1\n/);
  });

  test.each<[what: string, changes: Readonly<Record<string, unknown>>, check: Partial<Check>, code: number]>([
    [
      "an agent that is missing",
      { [PODS_PATH]: agentsTable(["n1", "1/1"]), [REPORTS_PATH]: reportsOf(reportObject("n1")) },
      { id: "agents", detail: "none on 1 of 2: n2", nodes: ["n2"] },
      1,
    ],
    [
      "an agent that is not ready",
      { [PODS_PATH]: agentsTable(["n1", "1/1"], ["n2", "0/1"]) },
      { id: "agents", detail: "not ready on 1 of 2: n2", nodes: ["n2"] },
      1,
    ],
    [
      "an agent of another version",
      { [REPORTS_PATH]: reportsOf(reportObject("n1"), reportObject("n2", { agentVersion: "0.0.9" })) },
      { id: "agent versions", detail: "0.1.0 on n1; 0.0.9 on n2", nodes: ["n2"], optional: true },
      0,
    ],
    [
      "an agent without a report",
      { [REPORTS_PATH]: reportsOf(reportObject("n1")) },
      { id: "reports", detail: "none of n2, where an agent is ready", nodes: ["n2"] },
      1,
    ],
    [
      "a report that is not written any more",
      {
        [REPORTS_PATH]: reportsOf(
          reportObject("n1"),
          reportObject("n2", { observedAt: new Date(Date.now() - 2 * 3600_000).toISOString() }),
        ),
      },
      { id: "reports", detail: "older than an hour, although an agent is ready: n2" },
      1,
    ],
    [
      "a report of another structure",
      { [REPORTS_PATH]: reportsOf(reportObject("n1"), reportObject("n2", { verdict: "cursed" })) },
      { id: "reports", detail: "of another version, and not readable: n2" },
      1,
    ],
    [
      "no custom resources",
      { [DISCOVERY]: undefined },
      { id: "custom resources", detail: "the API server does not serve unghost.dev/v1alpha1" },
      1,
    ],
    [
      "definitions of an older version",
      { [DISCOVERY]: served("ghostreports", "ghostreports/status") },
      { id: "custom resources", detail: "unghost.dev/v1alpha1 has no ghostheals, ghostheals/status" },
      1,
    ],
    [
      "an admission policy that is missing",
      { [POLICIES]: tableOf(["Name"], [["unghost-heal-requests"]]) },
      { id: "admission policy own-node-only", detail: "is not there", optional: true },
      0,
    ],
    [
      "an admission policy without a binding",
      { [BINDINGS]: tableOf(["Name", "PolicyName"], [["a", "unghost-own-node-only"]]) },
      { id: "admission policy heal-requests", detail: "has no binding", optional: true },
      0,
    ],
    ["slots that may not be read", { [LEASES]: "forbidden" }, { id: "slots", optional: true }, 0],
    [
      "an open breaker",
      {
        [REPORTS_PATH]: reportsOf(
          reportObject("n1"),
          reportObject("n2", {
            verdict: "ghosts",
            notHealing: "nothing is healed: 2 of 2 nodes became unhealthy",
            conditions: [
              { type: "GhostSandboxes", status: "True", reason: "BreakerOpen", message: "", lastTransitionTime: "" },
            ],
          }),
        ),
      },
      { id: "breaker", detail: "open on n2: nothing is healed: 2 of 2 nodes became unhealthy", nodes: ["n2"] },
      1,
    ],
  ])("reports %s", async (_what, changes, check, code) => {
    const found = await doctor(changes);

    expect(found.bad).toHaveLength(1);
    expect(found.bad[0]).toMatchObject({ ...check, status: "missing" });
    expect(found.code).toBe(code);
    expect(found.text).toContain(`${check.id}: `);
  });

  test("reports each permission that is missing, and what it is needed for", async () => {
    const { code, bad } = await doctor({}, ({ body }) =>
      /"resource":"(?:ghostheals|events)"/.test(JSON.stringify(body)),
    );

    expect(bad.map(({ id, detail, neededFor, optional }) => [id, detail, neededFor, optional])).toEqual([
      ["list events", "denied: list", "kubectl unghost why", true],
      ["create, get, delete ghostheals.unghost.dev", "denied: create, get, delete", "kubectl unghost heal", true],
    ]);
    expect(code).toBe(0);
    expect((await doctor({}, ({ body }) => JSON.stringify(body).includes("ghostreports"))).code).toBe(1);
  });

  test("names the nodes at risk, and how each risk ends", async () => {
    const since = new Date().toISOString();
    const { code, risks, text } = await doctor({
      [NODES_PATH]: nodes(["n1", "Ready", "containerd://1.6.33"], ["n2", "NotReady", "cri-o://1.36.0"]),
      [REPORTS_PATH]: reportsOf(
        reportObject("n1", { verdict: "ghosts", podCreation: { able: "no", since } }),
        reportObject("n2", {
          conditions: [
            { type: "GhostSandboxes", status: "True", reason: "HealingPaused", message: "", lastTransitionTime: "" },
          ],
        }),
      ),
      [LEASES]: leases(["unghost-heal-0", "gone"], ["unghost-heal-1", "n2"], ["unghost-heal-2", "n1"]),
    });

    expect(risks.map(({ id, nodes: of }) => [id, of])).toEqual([
      ["nodes not ready", ["n2"]],
      ["nodes without new pods", ["n1"]],
      ["ghosts", ["n1"]],
      ["healing paused", ["n2"]],
      ["slot of a dead node", ["gone"]],
      ["slot of a dead node", ["n2"]],
      ["runtime out of support", ["n1"]],
    ]);
    expect(text).toContain("unghost-heal-0 is held by gone, which does not exist");
    expect(code).toBe(0);
  });

  test("prints the nodes concerned by name, and refuses names", async () => {
    const oneAgent: Readonly<Record<string, unknown>> = {
      ...HEALTHY,
      [PODS_PATH]: agentsTable(["n1", "1/1"]),
      [REPORTS_PATH]: reportsOf(reportObject("n1")),
    };
    const rig = await fleetRig(({ path }) => ({
      body: path === REVIEWS ? { status: { allowed: true } } : oneAgent[path],
    }));

    expect((await rig.fleet("doctor", "-o", "name")).stdout).toBe("node/n2\n");
    expect(await rig.fleet("doctor", "n1")).toMatchObject({ code: 64 });
  });

  test("exits 2 with a sentence if the nodes cannot be read", async () => {
    const rig = await fleetRig(({ path }) => (path === REVIEWS ? { body: {} } : statusOf(403, "no")));

    expect(await rig.fleet("doctor")).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^unghost: /),
    });
  });

  test("escapes terminal sequences in what others wrote", async () => {
    const evil = "\u001b]0;x\u0007";
    const { text } = await doctor({
      [NODES_PATH]: nodes([`n${evil}`, "NotReady", `containerd://1.6${evil}`]),
      [LEASES]: leases(["unghost-heal-0", evil]),
      [REPORTS_PATH]: reportsOf(reportObject("n1", { agentVersion: evil })),
    });

    expect([text.includes("\u001b"), text.includes("\u0007")]).toEqual([false, false]);
  });
});
