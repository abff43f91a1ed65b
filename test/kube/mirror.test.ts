import { describe, expect, test, vi } from "vitest";
import { mirrorRig, podPath, putPod, TRUSTING } from "./mirror-rig.ts";

const HANG_GUARD_MS = 30_000;
const waiting = { timeout: HANG_GUARD_MS, interval: 20 };

function listsOf(requests: readonly string[], resource: string): readonly string[] {
  return requests.filter((one) => one.startsWith(`GET /api/v1/${resource}?`) && !one.includes("watch=true"));
}

function watchesOf(requests: readonly string[], resource: string): readonly string[] {
  return requests.filter((one) => one.startsWith(`GET /api/v1/${resource}?`) && one.includes("watch=true"));
}

describe("a mirror of the cluster", () => {
  test("lists this node's pods once, from the server's cache, and sends no requests while all is well", async () => {
    const rig = await mirrorRig();

    const facts = await rig.facts();
    await vi.waitFor(() => expect(watchesOf(rig.api.requests, "namespaces")).toHaveLength(1), waiting);
    const first = rig.takeRequests();
    for (let scan = 0; scan < 5; scan++) await rig.facts();

    expect(facts).toMatchObject({ nodeName: "n1", pods: [{ name: "web-1", uid: "uid-web-1" }], gaps: [] });
    expect(listsOf(first, "pods")).toEqual([
      "GET /api/v1/pods?fieldSelector=spec.nodeName=n1&limit=500&resourceVersion=0",
    ]);
    expect(watchesOf(first, "pods")).toEqual([
      expect.stringMatching(/fieldSelector=spec\.nodeName=n1.*allowWatchBookmarks/),
    ]);
    expect(rig.takeRequests()).toEqual([]);
  });

  test("follows pods and the annotations of node and namespaces, and notifies of changes", async () => {
    const rig = await mirrorRig();
    await rig.facts(true);
    const before = rig.changes();

    putPod(rig.store, "web-2", { status: { phase: "Pending" } });
    await rig.until((pods) => pods.length === 2);
    rig.store.remove(podPath("web-1"));
    await rig.until((pods) => pods.length === 1);
    const node = rig.store.get("/api/v1/nodes/n1");
    rig.store.put("/api/v1/nodes/n1", { ...node, metadata: { name: "n1", annotations: { "unghost.dev/paused": "" } } });
    const labels = { "unghost.dev/ignore": "true" };
    rig.store.put("/api/v1/namespaces/lab", { metadata: { name: "lab", labels } });

    await vi.waitFor(async () => {
      const facts = await rig.facts(true);
      expect(facts).toMatchObject({ node: { paused: true }, ignoredNamespaces: ["lab"] });
    }, waiting);
    expect((await rig.facts()).pods).toMatchObject([{ name: "web-2", phase: "Pending" }]);
    expect(rig.changes() - before).toBe(4);
  });

  test("does not notify of irrelevant changes", async () => {
    const rig = await mirrorRig();
    await rig.facts();
    const before = rig.changes();

    putPod(rig.store, "web-1", {
      metadata: { name: "web-1", namespace: "default", uid: "uid-web-1", labels: { a: "b" } },
    });
    putPod(rig.store, "web-2");
    await rig.until((pods) => pods.length === 2);

    expect(rig.changes() - before).toBe(1);
  });

  test("ignores pods of other nodes", async () => {
    const rig = await mirrorRig();
    await rig.facts();

    putPod(rig.store, "elsewhere", { spec: { nodeName: "n2" } });
    putPod(rig.store, "here");
    await rig.until((pods) => pods.some(({ name }) => name === "here"));

    expect((await rig.facts()).pods.map(({ name }) => name).toSorted()).toEqual(["here", "web-1"]);
  });

  test("sends no request that a kubelet's credentials forbid", async () => {
    const { makeAuthority } = await import("../../lab/stub-api/certificates.ts");
    const { tempDir } = await import("../node/temp-dir.ts");
    const { cert, key } = makeAuthority(tempDir(), "cluster").issue("/O=system:nodes/CN=system:node:n1");
    const data = (text: string): string => Buffer.from(text).toString("base64");
    const user = { "client-certificate-data": data(cert), "client-key-data": data(key) };
    const rig = await mirrorRig({ user, fill: (store) => putPod(store, "stuck", { status: { phase: "Pending" } }) });

    expect(await rig.facts(true)).toMatchObject({ gaps: [], ignoredNamespaces: [] });

    expect(rig.api.requests.filter((one) => !/v1\/(pods|nodes)\?/.test(one))).toEqual([]);
  });

  test("sends no request once it is closed", async () => {
    const rig = await mirrorRig();
    await rig.facts();
    await vi.waitFor(() => expect(watchesOf(rig.api.requests, "namespaces")).toHaveLength(1), waiting);
    rig.mirror.close();
    rig.takeRequests();

    await rig.api.cut();
    await new Promise((resolve) => setTimeout(resolve, 1500));

    expect(rig.takeRequests()).toEqual([]);
  });
});

describe("a broken watch", () => {
  test("is resumed where it broke, without missing an event", async () => {
    const rig = await mirrorRig();
    await rig.facts();
    await vi.waitFor(() => expect(watchesOf(rig.api.requests, "pods")).toHaveLength(1), waiting);
    putPod(rig.store, "web-2");
    await rig.until((pods) => pods.length === 2);
    const version = rig.store.get(podPath("web-2"))?.metadata.resourceVersion;

    await rig.api.cut();
    rig.store.remove(podPath("web-1"));
    putPod(rig.store, "web-3");
    await rig.until((pods) => pods.some(({ name }) => name === "web-3"));

    expect((await rig.facts()).pods.map(({ name }) => name).toSorted()).toEqual(["web-2", "web-3"]);
    expect(listsOf(rig.api.requests, "pods")).toHaveLength(1);
    expect(watchesOf(rig.api.requests, "pods").at(-1)).toContain(`resourceVersion=${version}&`);
  });

  test("is started again with a list after 410 Gone", async () => {
    const rig = await mirrorRig();
    await rig.facts();
    await vi.waitFor(() => expect(watchesOf(rig.api.requests, "pods")).toHaveLength(1), waiting);

    await rig.api.cut();
    putPod(rig.store, "web-2");
    rig.store.remove(podPath("web-1"));
    rig.store.compact();
    await rig.until((pods) => pods.map(({ name }) => name).join() === "web-2");

    expect(listsOf(rig.api.requests, "pods")).toHaveLength(2);
  });

  test("is listed again at once when a server that was down for long answers 410", async () => {
    const rig = await mirrorRig({ trust: { ...TRUSTING, brokenMs: 0 } });
    await rig.facts();
    rig.setMood("500");
    await rig.api.cut();
    const tries = (): number => watchesOf(rig.api.requests, "pods").length;
    await vi.waitFor(() => expect(tries()).toBe(3), waiting);
    const triedAt = performance.now();

    rig.store.compact();
    rig.setMood("well");
    await vi.waitFor(() => expect(tries()).toBe(4), waiting);
    const backAt = performance.now();
    const lastWaitMs = backAt - triedAt;
    await rig.until((pods) => pods.length === 1);

    expect(performance.now() - backAt).toBeLessThan(lastWaitMs);
  });

  test("notifies when it is back, because its data is current again", async () => {
    const rig = await mirrorRig({ trust: { ...TRUSTING, brokenMs: 0 } });
    await rig.facts();
    rig.setMood("500");
    await rig.api.cut();
    await vi.waitFor(async () => expect(await rig.failure()).toBeDefined(), waiting);
    const before = rig.changes();

    rig.setMood("well");
    await rig.until((pods) => pods.length === 1);

    expect(rig.changes()).toBeGreaterThan(before);
  });

  test("is resumed with the current credentials", async () => {
    const rig = await mirrorRig();
    await rig.facts();

    rig.setTokens({ server: "second", file: "second" });
    await rig.api.cut();
    putPod(rig.store, "web-2");

    await rig.until((pods) => pods.length === 2);
  });

  test("waits for credentials that are renewed later", async () => {
    const rig = await mirrorRig({ trust: { ...TRUSTING, brokenMs: 0 } });
    await rig.facts();

    rig.setTokens({ server: "second", file: "first" });
    await rig.api.cut();
    await vi.waitFor(async () => expect(await rig.failure()).toMatch(/answered 401/), waiting);
    rig.setTokens({ server: "second", file: "second" });

    await rig.until((pods) => pods.length === 1);
  });

  test.each(["429", "500"] as const)("backs off longer each time from a server that answers %s", async (mood) => {
    const rig = await mirrorRig({ trust: { ...TRUSTING, brokenMs: 0 } });
    await rig.facts();
    rig.takeRequests();

    rig.setMood(mood);
    await rig.api.cut();
    await vi.waitFor(async () => expect(await rig.failure()).toContain(`answered ${mood}`), waiting);
    await new Promise((resolve) => setTimeout(resolve, 2000));
    const tries = watchesOf(rig.takeRequests(), "pods").length;
    rig.setMood("well");
    await rig.until((pods) => pods.length === 1);

    expect(tries).toBeGreaterThan(0);
    expect(tries).toBeLessThan(6);
  });
});

describe("stale data", () => {
  test("is used as long as a watch may take to reconnect, and no longer", async () => {
    const rig = await mirrorRig({ trust: { ...TRUSTING, brokenMs: 3_000 } });
    await rig.facts();

    await rig.api.close();

    expect((await rig.facts()).pods).toHaveLength(1);
    await vi.waitFor(async () => expect(await rig.failure()).toMatch(/cannot be reached/), waiting);
  });

  test("is not used once the server has lost the version that it continues", async () => {
    const rig = await mirrorRig({ trust: TRUSTING });
    await rig.facts();
    await vi.waitFor(() => expect(watchesOf(rig.api.requests, "pods")).toHaveLength(1), waiting);

    await rig.api.cut();
    putPod(rig.store, "web-2");
    rig.store.compact();
    await vi.waitFor(() => expect(watchesOf(rig.api.requests, "pods")).toHaveLength(2), waiting);
    rig.setMood("500");

    await vi.waitFor(async () => expect(await rig.failure()).toMatch(/ended|answered 500/), waiting);
  });

  test("is not used before the first list", async () => {
    const rig = await mirrorRig({ timeoutMs: 300 });
    rig.setMood("hang");

    expect(await rig.failure()).toMatch(/did not answer in time|has not been listed yet/);
  });

  test("is not waited for when a starting server is slow with the first list", async () => {
    const rig = await mirrorRig({ timeoutMs: HANG_GUARD_MS, mood: "hang" });

    const startedAt = performance.now();
    expect(await rig.failure()).toMatch(/has not been listed yet/);

    expect(performance.now() - startedAt).toBeLessThan(HANG_GUARD_MS / 2);
  });

  test("is confirmed when something is dead and the watch has been silent", async () => {
    const rig = await mirrorRig({ trust: { ...TRUSTING, silentWhileUnhealthyMs: 0 } });
    await rig.facts();
    await vi.waitFor(() => expect(watchesOf(rig.api.requests, "namespaces")).toHaveLength(1), waiting);
    rig.takeRequests();

    await rig.facts(true);

    const [confirmed, ...more] = rig.takeRequests();
    expect(confirmed).toMatch(/^GET \/api\/v1\/pods\?.*resourceVersion=\d+&resourceVersionMatch=NotOlderThan$/);
    expect(more).toEqual([]);
  });

  test("is confirmed when the watch has been silent for very long", async () => {
    const rig = await mirrorRig({ trust: { ...TRUSTING, silentMs: 0 } });
    await rig.facts();
    await vi.waitFor(() => expect(watchesOf(rig.api.requests, "namespaces")).toHaveLength(1), waiting);
    rig.takeRequests();

    await rig.facts(false);

    expect(rig.takeRequests()).toEqual([expect.stringContaining("NotOlderThan")]);
  });

  test("is not used for long when the server refuses watches", async () => {
    const rig = await mirrorRig({ trust: { ...TRUSTING, brokenMs: 0 }, timeoutMs: 500 });
    await rig.facts();

    rig.setMood("hang");
    await rig.api.cut();

    await vi.waitFor(async () => expect(await rig.failure()).toMatch(/did not answer in time/), waiting);
  });

  test("is not used when something is dead and a silent server does not confirm it", async () => {
    const rig = await mirrorRig({ trust: { ...TRUSTING, silentWhileUnhealthyMs: 0 }, timeoutMs: 500 });
    await rig.facts();

    rig.setMood("hang");

    expect(await rig.failure(true)).toMatch(/did not answer in time/);
    expect((await rig.facts(false)).pods).toHaveLength(1);
  });

  test("does not wait for a hanging server again on each scan", async () => {
    const rig = await mirrorRig({ trust: { ...TRUSTING, silentWhileUnhealthyMs: 0 }, timeoutMs: HANG_GUARD_MS });
    await rig.facts();
    await vi.waitFor(() => expect(watchesOf(rig.api.requests, "namespaces")).toHaveLength(1), waiting);
    rig.setMood("hang");
    rig.takeRequests();

    const startedAt = performance.now();
    for (let scan = 0; scan < 5; scan++) expect(await rig.failure(true)).toMatch(/did not confirm/);

    expect(performance.now() - startedAt).toBeLessThan(HANG_GUARD_MS / 2);
    expect(rig.takeRequests()).toHaveLength(1);
  });

  test("of a node that the cluster does not have declares no pod gone", async () => {
    const rig = await mirrorRig({
      fill: (store) => {
        store.remove("/api/v1/nodes/n1");
        store.remove(podPath("web-1"));
      },
    });

    expect(await rig.failure()).toMatch(/lists no pod of a node "n1"/);
  });
});
