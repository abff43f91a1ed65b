import { afterAll, afterEach, describe, expect, test } from "vitest";
import { base64, makeRig, NAMESPACES, NODE, ordinary, PODS } from "./rig.ts";
import { type Asked, listOf, nodeObject, podObject, type Reply, statusOf } from "./stub-server.ts";

const rig = makeRig();
afterEach(() => rig.stop());
afterAll(() => rig.remove());

const serving = rig.ca.issue("/CN=kube-apiserver", { san: "IP:127.0.0.1" });
const kubelet = rig.ca.issue("/O=system:nodes/CN=system:node:n1");

function podsOf(...pods: readonly ReturnType<typeof podObject>[]): Readonly<Record<string, () => Reply>> {
  return { [PODS]: () => ({ body: listOf(pods) }) };
}

describe("TLS", () => {
  test("sends a client certificate, and reads the node name from a kubelet's certificate", async () => {
    const stub = await rig.serveWith(ordinary, serving);
    const user = { "client-certificate-data": base64(kubelet.cert), "client-key-data": base64(kubelet.key) };

    const facts = await rig.askFacts({ node: "some-other-name", user });

    expect(facts).toMatchObject({ nodeName: "n1", pods: [{ name: "web-1" }], gaps: [] });
    expect(stub.asked.map(({ client }) => client)).toEqual(["system:node:n1", "system:node:n1"]);
    expect(stub.asked.map(({ path }) => path)).not.toContain(NAMESPACES);
  });

  test("sends a token", async () => {
    const stub = await rig.serveWith(ordinary, serving);

    await rig.askFacts();

    expect(new Set(stub.asked.map(({ authorization }) => authorization))).toEqual(new Set(["Bearer secret"]));
  });

  test("sends no token to a server without a trusted certificate", async () => {
    const stub = await rig.serveWith(ordinary, serving);

    const answer = await rig.ask({ trust: rig.ca.issue("/CN=stranger").cert });

    expect(answer).toMatchObject({
      kind: "failed",
      reason: expect.stringMatching(/cannot be reached: .*certificate/i),
    });
    expect(stub.asked).toEqual([]);
  });

  test("sends no token to a server with the certificate of another host", async () => {
    const stub = await rig.serveWith(ordinary, rig.ca.issue("/CN=other", { san: "DNS:other.lab" }));

    expect(await rig.ask()).toMatchObject({ kind: "failed", reason: expect.stringContaining("cannot be reached") });
    expect(stub.asked).toEqual([]);
  });
});

describe("pods of the node", () => {
  test("are requested by node, from the server's cache", async () => {
    const stub = await rig.serve();

    await rig.askFacts({ node: "N1" });

    const { query } = stub.asked.find(({ path }) => path === PODS) ?? {};
    expect(Object.fromEntries(query ?? [])).toEqual({
      fieldSelector: "spec.nodeName=n1",
      limit: "500",
      resourceVersion: "0",
    });
  });

  test("carry what decides about their sandboxes", async () => {
    const pods = podsOf(
      podObject({ name: "web-1", uid: "310e3cd6-63ea-446b-a218-25835c73ca24", phase: "Pending" }),
      podObject({
        name: "job",
        uid: "u2",
        namespace: "batch",
        phase: "Succeeded",
        deletionTimestamp: "2026-11-15T03:30:00Z",
      }),
      podObject({ name: "db", uid: "u3", annotations: { "unghost.dev/ignore": "true" } }),
      podObject({ name: "tidy", uid: "u4", labels: { "unghost.dev/ignore": "false" } }),
    );
    await rig.serve(pods);

    const facts = await rig.askFacts();

    const none = { terminating: false, ignored: false };
    expect(facts.pods).toEqual([
      { ...none, namespace: "default", name: "web-1", uid: "310e3cd6-63ea-446b-a218-25835c73ca24", phase: "Pending" },
      { ...none, namespace: "batch", name: "job", uid: "u2", phase: "Succeeded", terminating: true },
      { ...none, namespace: "default", name: "db", uid: "u3", phase: "Running", ignored: true },
      { ...none, namespace: "default", name: "tidy", uid: "u4", phase: "Running" },
    ]);
  });

  test("that are static carry their manifest's hash, like their sandboxes", async () => {
    const hash = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";
    const annotations = {
      "kubernetes.io/config.hash": hash,
      "kubernetes.io/config.mirror": hash,
      "kubernetes.io/config.source": "file",
    };
    await rig.serve(podsOf(podObject({ name: "kube-apiserver-n1", uid: "mirror-uid", annotations })));

    const facts = await rig.askFacts();

    expect(facts.pods.map(({ uid }) => uid)).toEqual([hash]);
  });

  test("of other nodes are left out, even when the server returns them", async () => {
    await rig.serve(podsOf(podObject({ name: "a", uid: "a" }), podObject({ name: "b", uid: "b", node: "n2" })));

    const facts = await rig.askFacts();

    expect(facts.pods.map(({ name }) => name)).toEqual(["a"]);
  });

  test("are read page by page", async () => {
    const page = (asked: Asked): Reply => {
      const at = Number(asked.query.get("continue") ?? "0");
      const pods = [podObject({ name: `p${at}`, uid: `u${at}` })];
      return { body: listOf(pods, at < 3 ? String(at + 1) : "") };
    };
    const stub = await rig.serve({ [PODS]: page });

    const facts = await rig.askFacts();

    expect(facts.pods.map(({ uid }) => uid)).toEqual(["u0", "u1", "u2", "u3"]);
    const asked = stub.asked.filter(({ path }) => path === PODS);
    // A server refuses the two together.
    expect(asked.filter(({ query }) => query.has("continue") && query.has("resourceVersion"))).toEqual([]);
  });

  test("are listed again when the list expires between two pages", async () => {
    let lists = 0;
    const page = ({ query }: Asked): Reply => {
      if (!query.has("continue")) lists += 1;
      if (query.has("continue") && lists === 1) return statusOf(410, "the provided continue parameter is too old");
      const isFirst = !query.has("continue");
      return { body: listOf([podObject({ name: "p", uid: isFirst ? "u0" : "u1" })], isFirst ? "more" : "") };
    };
    await rig.serve({ [PODS]: page });

    const facts = await rig.askFacts();

    expect(facts.pods.map(({ uid }) => uid)).toEqual(["u0", "u1"]);
  });

  test("with endless pages are aborted", async () => {
    await rig.serve({ [PODS]: () => ({ body: listOf([], "again") }) });

    expect(await rig.ask()).toMatchObject({ kind: "failed", reason: expect.stringContaining("does not end") });
  });

  test("may be an empty list", async () => {
    await rig.serve({ [PODS]: () => ({ body: { kind: "PodList", metadata: {}, items: null } }) });

    expect((await rig.askFacts()).pods).toEqual([]);
  });
});

describe("annotations and labels on node and namespaces", () => {
  test.each([
    ["nothing", {}, { paused: false, ignored: false }],
    ["paused", { annotations: { "unghost.dev/paused": "" } }, { paused: true, ignored: false }],
    ["paused, as a label", { labels: { "unghost.dev/paused": "yes" } }, { paused: true, ignored: false }],
    ["no longer paused", { labels: { "unghost.dev/paused": "false" } }, { paused: false, ignored: false }],
    ["ignored", { labels: { "unghost.dev/ignore": "true" } }, { paused: false, ignored: true }],
  ])("a node: %s", async (_what, marks, expected) => {
    await rig.serve({ [NODE]: () => ({ body: nodeObject("n1", marks) }) });

    expect((await rig.askFacts()).node).toMatchObject(expected);
  });

  test("ignored namespaces are returned, and requested as metadata only", async () => {
    const names = listOf([
      { metadata: { name: "default" } },
      { metadata: { name: "lab", labels: { "unghost.dev/ignore": "true" } } },
      { metadata: { name: "old", annotations: { "unghost.dev/ignore": "true" } } },
    ]);
    const stub = await rig.serve({ [NAMESPACES]: () => ({ body: names }) });

    expect((await rig.askFacts()).ignoredNamespaces).toEqual(["lab", "old"]);
    expect(stub.asked.find(({ path }) => path === NAMESPACES)?.accept).toContain("PartialObjectMetadataList");
  });

  test("reports what is forbidden", async () => {
    const forbidden = (): Reply => statusOf(403, "may not");
    await rig.serve({ [NAMESPACES]: forbidden, [NODE]: forbidden });

    const facts = await rig.askFacts();

    expect(facts.pods).toHaveLength(1);
    expect(facts.gaps).toEqual([
      expect.stringMatching(/paused .* is unknown: .*403/),
      expect.stringMatching(/which namespaces to ignore is not known: .*403/),
    ]);
  });
});

describe("an empty list of pods", () => {
  test("is trusted when the cluster has the node", async () => {
    await rig.serve(podsOf());

    expect((await rig.askFacts()).pods).toEqual([]);
  });

  test.each([
    [404, 'nodes "n1" not found'],
    [403, "forbidden"],
  ])("proves nothing when the node itself is answered with %i", async (status, message) => {
    await rig.serve({ ...podsOf(), [NODE]: () => statusOf(status, message) });

    const answer = await rig.ask();

    expect(answer).toMatchObject({
      kind: "failed",
      reason: expect.stringMatching(/lists no pod of a node "n1".*--node/),
    });
  });
});

test("a server URL may have a path", async () => {
  const stub = await rig.serveWith((asked) =>
    ordinary({ ...asked, path: asked.path.replace("/k8s/clusters/c-1", "") }),
  );

  const facts = await rig.askFacts({ server: `${stub.url}/k8s/clusters/c-1/` });

  expect(facts.pods).toHaveLength(1);
  expect(stub.asked.every(({ path }) => path.startsWith("/k8s/clusters/c-1/api"))).toBe(true);
});

describe("no token is sent when the server is not verified", () => {
  test.each([
    ["over plain HTTP", undefined, {}],
    ["with verification disabled", "tls", { "insecure-skip-tls-verify": true }],
  ] as const)("%s", async (_what, tls, cluster) => {
    const stub = await rig.serveWith(() => statusOf(401, "Unauthorized"), tls && serving);

    const answer = await rig.ask({ cluster });

    expect(stub.asked.length).toBeGreaterThan(0);
    expect(stub.asked.map(({ authorization }) => authorization)).toEqual(stub.asked.map(() => undefined));
    expect(answer).toMatchObject({ kind: "failed", reason: expect.stringContaining("the token was not sent") });
  });
});
