import { describe, expect, onTestFinished, test } from "vitest";
import { type StubApi, type StubApiOptions, serveStubApi } from "../../lab/stub-api/serve.ts";
import { openStore, type Store } from "../../lab/stub-api/store.ts";
import { type Api, openApi, type PatchKind, type WatchEvent } from "../../src/kube/api.ts";
import { nodeObject, podObject } from "./stub-server.ts";

/** The client and the lab's server, tested against each other. */
async function start(
  options: Partial<StubApiOptions> = {},
): Promise<{ readonly store: Store; readonly stub: StubApi; readonly api: Api }> {
  const store = openStore();
  const stub = await serveStubApi({ store, ...options });
  const access = { server: new URL(stub.url), tls: { insecure: false }, from: "the test" };
  const api = openApi(access, { timeoutMs: 60_000 });
  onTestFinished(async () => {
    api.close();
    await stub.close();
  });
  return { store, stub, api };
}

const LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const lease = (holderIdentity: string, metadata: object = {}) => ({
  metadata: { name: "slot-0", ...metadata },
  spec: { holderIdentity },
});

describe("a lease", () => {
  test("is created once, and replaced by a client with its latest version", async () => {
    const { api } = await start();

    const made = await api.create(LEASES, lease("a"));
    await expect(api.create(LEASES, lease("b"))).rejects.toMatchObject({ kind: "conflict" });
    const { resourceVersion } = (made as { readonly metadata: { readonly resourceVersion: string } }).metadata;
    const taken = await api.replace(`${LEASES}/slot-0`, lease("b", { resourceVersion }));
    await expect(api.replace(`${LEASES}/slot-0`, lease("c", { resourceVersion }))).rejects.toMatchObject({
      kind: "conflict",
      message: expect.stringContaining("has been modified"),
    });

    expect(taken).toMatchObject({ kind: "Lease", spec: { holderIdentity: "b" } });
    expect(await api.get(`${LEASES}/slot-0`)).toEqual(taken);
  });

  test("requires the version that is replaced", async () => {
    const { api } = await start();
    await api.create(LEASES, lease("a"));

    await expect(api.replace(`${LEASES}/slot-0`, lease("b"))).rejects.toThrow(/must be specified for an update/);
  });

  test("is deleted by its uid, and no other of its name", async () => {
    const { api } = await start();
    const made = await api.create(LEASES, lease("a"));
    const { uid } = (made as { readonly metadata: { readonly uid: string } }).metadata;

    await expect(api.delete(`${LEASES}/slot-0`, { preconditions: { uid: "other" } })).rejects.toMatchObject({
      kind: "conflict",
    });
    await api.delete(`${LEASES}/slot-0`, { preconditions: { uid } });

    await expect(api.get(`${LEASES}/slot-0`)).rejects.toMatchObject({ kind: "not-found" });
  });
});

describe("writes are not retried", () => {
  const writes: readonly (readonly [string, (api: Api) => Promise<unknown>])[] = [
    ["create", (api) => api.create(LEASES, lease("a"))],
    ["replace", (api) => api.replace(`${LEASES}/slot-0`, lease("a"))],
    ["patch", (api) => api.patch("/api/v1/nodes/n1", {}, "merge")],
    ["delete", (api) => api.delete("/api/v1/nodes/n1", {})],
  ];
  test.each(writes)("%s, by a server that is too busy", async (_what, write) => {
    const { api, stub } = await start({ mood: () => "429" });

    await expect(write(api)).rejects.toMatchObject({ kind: "busy", retryAfterSeconds: 1 });

    expect(stub.requests).toHaveLength(1);
  });
});

describe("node status", () => {
  const condition = (status: string) => ({ type: "GhostSandboxes", status, reason: "r", message: "m" });

  test("keeps its other conditions with a strategic merge patch", async () => {
    const { api, store } = await start();
    const ready = { type: "Ready", status: "True" };
    store.put("/api/v1/nodes/n1", { ...nodeObject(), status: { conditions: [ready] } });

    await api.patch("/api/v1/nodes/n1/status", { status: { conditions: [condition("True")] } }, "strategic");
    await api.patch("/api/v1/nodes/n1/status", { status: { conditions: [condition("False")] } }, "strategic");

    expect(await api.get("/api/v1/nodes/n1")).toMatchObject({ status: { conditions: [ready, condition("False")] } });
    const gone = { $patch: "delete", type: "GhostSandboxes" };
    await api.patch("/api/v1/nodes/n1/status", { status: { conditions: [gone] } }, "strategic");
    expect(await api.get("/api/v1/nodes/n1")).toMatchObject({ status: { conditions: [ready] } });
  });

  test("cannot be written through the node, nor the node through it", async () => {
    const { api, store } = await start();
    store.put("/api/v1/nodes/n1", { ...nodeObject(), spec: { a: 1 }, status: { b: 1 } });

    await api.patch("/api/v1/nodes/n1", { spec: { a: 2 }, status: { b: 2 } }, "merge");
    await api.patch("/api/v1/nodes/n1/status", { spec: { a: 3 }, status: { b: 3 } }, "merge");

    expect(await api.get("/api/v1/nodes/n1")).toMatchObject({ spec: { a: 2 }, status: { b: 3 } });
  });

  test.each<readonly [PatchKind, unknown]>([
    ["merge", { metadata: { labels: { a: "1" } } }],
    ["strategic", { metadata: { labels: { a: "1" } } }],
    ["json", [{ op: "add", path: "/metadata/labels/a", value: "1" }]],
  ])("labels can be set by a %s patch", async (kind, patch) => {
    const { api, store } = await start();
    store.put("/api/v1/nodes/n1", nodeObject());

    await api.patch("/api/v1/nodes/n1", patch, kind);

    expect(await api.get("/api/v1/nodes/n1")).toMatchObject({
      metadata: { labels: { "kubernetes.io/os": "linux", a: "1" } },
    });
  });

  test("with an old version is a conflict", async () => {
    const { api, store } = await start();
    store.put("/api/v1/nodes/n1", nodeObject());

    await expect(api.patch("/api/v1/nodes/n1", { metadata: { resourceVersion: "1" } }, "merge")).rejects.toMatchObject({
      kind: "conflict",
    });
    await expect(api.patch("/api/v1/nodes/n2", {}, "merge")).rejects.toMatchObject({ kind: "not-found" });
  });
});

describe("an event", () => {
  const about = (involvedObject: object) => ({ metadata: { generateName: "n1." }, involvedObject, reason: "R" });

  test("must be in the namespace of its object, and a node's in default", async () => {
    const { api } = await start();
    const node = { kind: "Node", name: "n1" };

    await api.create("/api/v1/namespaces/default/events", about(node));
    await api.create("/api/v1/namespaces/shop/events", about({ kind: "Pod", namespace: "shop", name: "web" }));
    await expect(api.create("/api/v1/namespaces/shop/events", about(node))).rejects.toThrow(/does not match/);

    const list = await api.get("/api/v1/events?fieldSelector=involvedObject.kind%3DNode");
    expect(list).toMatchObject({ items: [{ metadata: { name: expect.stringMatching(/^n1\../) } }] });
  });
});

describe("lists", () => {
  const names = (list: unknown): readonly string[] =>
    (list as { readonly items: readonly { readonly metadata: { readonly name: string } }[] }).items.map(
      ({ metadata }) => metadata.name,
    );

  test.each([
    ["app=web", ["a", "b"]],
    ["app!=web", ["c", "d"]],
    ["app in (web,db),tier", ["b", "c"]],
    ["app notin (web)", ["c", "d"]],
    ["!app", ["d"]],
  ])("can be selected by the labels %s", async (labelSelector, expected) => {
    const { api, store } = await start();
    const labels = { a: { app: "web" }, b: { app: "web", tier: "1" }, c: { app: "db", tier: "2" }, d: {} };
    for (const [name, own] of Object.entries(labels)) {
      store.put(`/api/v1/namespaces/default/pods/${name}`, podObject({ name, uid: name, labels: own }));
    }

    const query = new URLSearchParams({ labelSelector });

    expect(names(await api.get(`/api/v1/pods?${query.toString()}`))).toEqual(expected);
  });

  test("by an unsupported field are refused", async () => {
    const { api } = await start();

    await expect(api.get("/apis/storage.k8s.io/v1/csinodes?fieldSelector=spec.drivers%3Dx")).rejects.toThrow(
      /field label not supported/,
    );
  });

  test("are paginated, unless they come from the cache; an expired page is 410", async () => {
    const { api, store } = await start();
    for (const name of ["a", "b", "c"]) {
      store.put(`/api/v1/namespaces/default/pods/${name}`, podObject({ name, uid: name }));
    }

    const first = await api.get("/api/v1/pods?limit=2");
    const { continue: next } = (first as { readonly metadata: { readonly continue: string } }).metadata;

    expect(names(first)).toEqual(["a", "b"]);
    expect(names(await api.get(`/api/v1/pods?limit=2&continue=${next}`))).toEqual(["c"]);
    expect(names(await api.get("/api/v1/pods?limit=2&resourceVersion=0"))).toEqual(["a", "b", "c"]);
    store.compact();
    await expect(api.get(`/api/v1/pods?limit=2&continue=${next}`)).rejects.toMatchObject({ kind: "expired" });
  });
});

describe("watches", () => {
  async function some(api: Api, path: string, count: number): Promise<readonly WatchEvent[]> {
    const events: WatchEvent[] = [];
    for await (const event of api.watch(path, AbortSignal.timeout(30_000))) {
      events.push(event);
      if (events.length === count) break;
    }
    return events;
  }
  const pod = (name: string, phase: string) => podObject({ name, uid: name, phase });
  const path = (name: string): string => `/api/v1/namespaces/default/pods/${name}`;

  test("start after the given version, and show objects that start or stop to match", async () => {
    const { api, store } = await start();
    store.put(path("a"), pod("a", "Running"));
    const from = store.version();
    store.put(path("b"), pod("b", "Pending"));
    store.put(path("a"), pod("a", "Pending"));
    store.put(path("a"), pod("a", "Running"));
    store.remove(path("b"));

    const query = `fieldSelector=status.phase%3DPending&resourceVersion=${from}`;
    const events = await some(api, `/api/v1/pods?${query}`, 4);

    expect(events.map(({ type, object }) => `${type} ${(object as ReturnType<typeof pod>).metadata.name}`)).toEqual([
      "ADDED b",
      "ADDED a",
      "DELETED a",
      "DELETED b",
    ]);
  });

  test("send bookmarks on request", async () => {
    const { api, store } = await start({ bookmarkMs: 20 });

    const [event] = await some(api, "/api/v1/pods?allowWatchBookmarks=true", 1);

    expect(event).toMatchObject({
      type: "BOOKMARK",
      object: { kind: "Pod", metadata: { resourceVersion: String(store.version()) } },
    });
  });

  test("from an expired version end with 410", async () => {
    const { api, store } = await start();
    const from = store.version();
    store.compact();

    const events = await some(api, `/api/v1/pods?resourceVersion=${from}`, 2);

    expect(events).toMatchObject([{ type: "ERROR", object: { code: 410, reason: "Expired" } }]);
  });

  test("end at their timeout", async () => {
    const { api } = await start();

    expect(await some(api, "/api/v1/pods?timeoutSeconds=1", 1)).toEqual([]);
  });

  test("that are refused return the reason", async () => {
    const { api } = await start({ token: () => "another" });

    await expect(some(api, "/api/v1/pods", 1)).rejects.toMatchObject({ kind: "unauthorized" });
  });

  test("that are cut fail", async () => {
    const { api, stub } = await start();

    const watching = some(api, "/api/v1/pods", 1);
    const cutting = setInterval(() => void stub.cut(), 50);
    onTestFinished(() => clearInterval(cutting));

    await expect(watching).rejects.toMatchObject({ kind: "unreachable" });
  });
});
