import { expect, test } from "vitest";
import { listOf, type Reply, statusOf } from "../kube/stub-server.ts";
import { fleetRig } from "./fleet-rig.ts";
import { grantedBy, permissionOf } from "./permissions.ts";

const UID = "7d1f0c3a-0000-4000-8000-00000000c0de";
const NAMESPACE = "/api/v1/namespaces/shop";
const LOG = "/api/v1/nodes/n1/proxy/logs/";

const HELD = `E1119 12:00:00.000000     700 pod_workers.go:1301] "Error syncing pod, skipping" err="failed to \\"CreatePodSandbox\\" for \\"web-0_shop(${UID})\\" with CreatePodSandboxError: \\"rpc error: code = Unknown desc = failed to reserve sandbox name \\\\\\"web-0_shop_${UID}_1\\\\\\": name \\\\\\"web-0_shop_${UID}_1\\\\\\" is reserved for \\\\\\"${"3f9c0de1".repeat(8)}\\\\\\"\\"" pod="shop/web-0" podUID="${UID}"`;

interface Answered {
  readonly byQuery: (query: URLSearchParams) => string;
}

/** A pod that waits for an hour, whose events have expired. */
async function why(log: Reply | string | Answered) {
  const created = new Date(Date.now() - 3600_000).toISOString();
  const answers: Readonly<Record<string, unknown>> = {
    [`${NAMESPACE}/pods/web-0`]: {
      metadata: { name: "web-0", namespace: "shop", uid: UID, creationTimestamp: created },
      spec: { nodeName: "n1" },
      status: { phase: "Pending", conditions: [{ type: "PodScheduled", status: "True", lastTransitionTime: created }] },
    },
    [`${NAMESPACE}/events`]: listOf([]),
    "/api/v1/nodes/n1": { metadata: { name: "n1" }, status: { conditions: [{ type: "Ready", status: "True" }] } },
  };
  const rig = await fleetRig(({ path, query }) => {
    if (path === LOG) {
      if (typeof log === "string") return { body: log };
      return "byQuery" in log ? { body: log.byQuery(query) } : log;
    }
    return path in answers ? { body: answers[path] } : statusOf(404, `${path} not found`);
  });
  const { stdout } = await rig.fleet("why", "shop/web-0", "-o", "json");
  const { items, problems } = JSON.parse(stdout) as Diagnosed;
  return { ...items[0], problems, asked: rig.server.asked };
}

interface Diagnosed {
  readonly items: readonly [
    { readonly code: string; readonly class?: string; readonly evidence: readonly { source: string }[] },
  ];
  readonly problems: readonly string[];
}

test("kubelet's log shows the cause where the events have expired", async () => {
  const { code, class: id, evidence, problems, asked } = await why(`some line\n${HELD}\n`);

  expect([code, id, problems]).toEqual(["sandbox", "sandbox-name-held-by-inflight-run", []]);
  expect(evidence[0]?.source).toBe("kubelet's log on n1");
  const { query } = asked.find(({ path }) => path === LOG) ?? {};
  expect([query?.get("query"), query?.get("pattern")]).toEqual(["kubelet", UID]);
});

test("a node without journald, whose kubelet selects no lines of its log file, sends all of it", async () => {
  const refused = "\noptions present and query resolved to log files for [kubelet]\ntry without specifying options\n";

  const { code, asked } = await why({ byQuery: (query) => (query.has("pattern") ? refused : `${HELD}\n`) });

  expect(code).toBe("sandbox");
  expect(asked.filter(({ path }) => path === LOG).map(({ query }) => query.toString())).toEqual([
    expect.stringContaining("pattern"),
    "query=kubelet",
  ]);
});

test("lines about other pods, and lines without a known failure, show nothing", async () => {
  const other = HELD.replaceAll(UID, "another-uid");

  expect(await why(`${other}\nI1119 synced pod podUID="${UID}"\n`)).toMatchObject({ code: "unknown", problems: [] });
});

test.each<[string, Reply | string, string]>([
  ["no permission", statusOf(403, "nodes n1 is forbidden"), "the role unghost-node-logs would allow it"],
  [
    "a node with the query switched off",
    '<pre>\n<a href="pods/">pods/</a>\n</pre>\n',
    "enableSystemLogQuery is off there",
  ],
  ["a node that does not answer", statusOf(502, "dial tcp: connection refused"), "connection refused"],
])("with %s it is named as not read", async (_what, log, problem) => {
  const { code, problems } = await why(log);

  expect(code).toBe("unknown");
  expect(problems).toEqual([expect.stringContaining(`kubelet's log on n1: `)]);
  expect(problems[0]).toContain(problem);
});

test("a log of any size is read up to a limit", async () => {
  const { code } = await why(`${HELD}\n${`x podUID="${UID}"\n`.repeat(50_000)}`);

  expect(code).toBe("sandbox");
});

test("unghost-node-logs grants what unghost-viewer does not, and nothing else", async () => {
  const { asked } = await why(HELD);

  const needed = new Set(asked.map(permissionOf));
  for (const permission of grantedBy("viewer")) needed.delete(permission);
  expect([...needed]).toEqual(grantedBy("node-logs"));
});
