import { afterAll, beforeAll, expect, test } from "vitest";
import { type ControlPlane, startControlPlane } from "../../lab/cluster/control-plane.ts";
import { ensureClusterTools } from "../../lab/cluster/tools.ts";
import { until } from "../../lab/poll.ts";
import { openRawApi, type RawAnswer, type RawApi } from "../../lab/raw-api.ts";
import { type StubApi, serveStubApi } from "../../lab/stub-api/serve.ts";
import { openStore } from "../../lab/stub-api/store.ts";
import { ensureTools } from "../../lab/tools.ts";
import { HANG_GUARD_MS, WAIT_MS } from "./lab-cluster.ts";

/** The lab's stub API server and a real one get the same calls, and have to return the same answers. */
let controlPlane: ControlPlane | undefined;
let stub: StubApi | undefined;
let servers: readonly RawApi[] = [];
const store = openStore();

beforeAll(async () => {
  const programs = await ensureClusterTools();
  if (!programs.available) throw new Error(programs.reason);
  controlPlane = await startControlPlane(await ensureTools(), programs);
  stub = await serveStubApi({ store, bookmarkMs: 1000 });
  store.put("/api/v1/namespaces/default", { metadata: { name: "default" } });
  const real = openRawApi({ socketPath: controlPlane.proxySocket });
  servers = [real, openRawApi({ port: Number(new URL(stub.url).port) })];
  await until("pods may be created", WAIT_MS, async () => {
    const { code } = await real.ask("GET", `${DEFAULT}/serviceaccounts/default`);
    return code === 200 ? true : undefined;
  });
  // It would delete pods of nodes that do not exist during the comparison.
  await controlPlane.controllerManager.end("KILL");
}, HANG_GUARD_MS);

afterAll(async () => {
  await stub?.close();
  await controlPlane?.destroy();
});

const DEFAULT = "/api/v1/namespaces/default";
const PODS = `${DEFAULT}/pods`;
const EVENTS = `${DEFAULT}/events`;
const NODES = "/api/v1/nodes";
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const MERGE = "application/merge-patch+json";
const STRATEGIC = "application/strategic-merge-patch+json";
const JSON_PATCH = "application/json-patch+json";

/** The compared parts; uids, versions, times and messages differ. */
interface Gist {
  readonly code: number;
  readonly kind?: unknown;
  readonly apiVersion?: unknown;
  readonly reason?: unknown;
  readonly status?: unknown;
}

function gist({ code, body }: RawAnswer): Gist {
  const { kind, apiVersion, reason, status } = body as Record<string, unknown>;
  return { code, kind, apiVersion, ...(kind === "Status" ? { reason, status } : {}) };
}

type Metadata = Readonly<Record<string, unknown>> & { readonly name: string; readonly resourceVersion: string };

function metadataOf({ body }: RawAnswer): Metadata {
  return (body as { readonly metadata: Metadata }).metadata;
}

/** The real one keeps its history in etcd and in memory. */
async function forget(): Promise<void> {
  await controlPlane?.compact();
  await controlPlane?.apiServer.end("KILL");
  await controlPlane?.startApiServer();
}

/** Runs the same calls on both servers and compares their answers; returns the real one's. */
async function agree<T>(calls: (api: RawApi) => Promise<T>): Promise<T> {
  const [real, stubbed] = await Promise.all(servers.map((api) => calls(api)));
  expect(stubbed).toEqual(real);
  if (real === undefined) throw new Error("there is no server");
  return real;
}

const lease = (name: string, holderIdentity: string, metadata: object = {}) => ({
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  metadata: { name, ...metadata },
  spec: { holderIdentity },
});

const pod = (name: string, labels: object = {}, spec: object = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, labels },
  spec: { nodeName: "elsewhere", containers: [{ name: "main", image: "unghost.lab/pause:1" }], ...spec },
});

test("a lease is created once, and replaced only with its latest version", async () => {
  const answered = await agree(async (api) => {
    const made = await api.ask("POST", LEASES, { body: lease("slot-0", "a") });
    const { resourceVersion, uid } = metadataOf(made);
    const replace = (holder: string, metadata: object) =>
      api.ask("PUT", `${LEASES}/slot-0`, { body: lease("slot-0", holder, metadata) });
    const answers = [
      made,
      await api.ask("POST", LEASES, { body: lease("slot-0", "b") }),
      await replace("b", { resourceVersion }),
      await replace("c", { resourceVersion }),
      await replace("c", {}),
      await api.ask("PUT", `${LEASES}/slot-1`, { body: lease("slot-1", "a") }),
      await api.ask("PUT", `${LEASES}/slot-0`, { body: lease("other", "a") }),
      await api.ask("DELETE", `${LEASES}/slot-0`, { body: { preconditions: { uid: "another" } } }),
      await api.ask("DELETE", `${LEASES}/slot-0`, { body: { preconditions: { uid } } }),
      await api.ask("DELETE", `${LEASES}/slot-0`),
      await api.ask("POST", NODES, { body: { apiVersion: "v1", kind: "Node", metadata: { name: "deleted" } } }),
      await api.ask("DELETE", `${NODES}/deleted`),
      await api.ask("GET", `${LEASES}/slot-0`),
    ];
    return answers.map(gist);
  });
  expect(answered.map(({ code }) => code)).toEqual([201, 409, 200, 409, 422, 201, 400, 409, 200, 404, 201, 200, 404]);
});

test("unknown objects, kinds and bodies are refused alike", async () => {
  const answered = await agree(async (api) => {
    const answers = [
      await api.ask("GET", `${PODS}/missing`),
      await api.ask("PATCH", `${PODS}/missing`, { body: { metadata: { labels: { a: "b" } } }, contentType: MERGE }),
      await api.ask("DELETE", `${PODS}/missing`),
      await api.ask("GET", `${PODS}?fieldSelector=spec.color%3Dred`),
      await api.ask("GET", `${PODS}?continue=nonsense`),
      await api.ask("PATCH", NODES.concat("/missing"), { body: {}, contentType: MERGE }),
    ];
    return answers.map(gist);
  });
  expect(answered.map(({ code }) => code)).toEqual([404, 404, 404, 400, 400, 404]);
});

test("patches of a node and its status are applied alike", async () => {
  await agree(async (api) => {
    const node = `${NODES}/patched`;
    const patch = (path: string, body: unknown, contentType: string) => api.ask("PATCH", path, { body, contentType });
    const condition = (type: string, status: string) => ({ type, status, reason: "Lab", message: "" });
    const conditions = (...all: readonly object[]) => ({ status: { conditions: all } });
    const made = await api.ask("POST", NODES, {
      body: { apiVersion: "v1", kind: "Node", metadata: { name: "patched" } },
    });
    const { resourceVersion } = metadataOf(made);
    const answers = [
      made,
      await patch(node, { metadata: { annotations: { "unghost.dev/a": "1", "unghost.dev/b": "2" } } }, MERGE),
      await patch(node, { metadata: { annotations: { "unghost.dev/a": null } } }, MERGE),
      await patch(node, { metadata: { resourceVersion, labels: { a: "b" } } }, MERGE),
      await patch(`${node}/status`, conditions(condition("GhostSandboxes", "True")), STRATEGIC),
      await patch(
        `${node}/status`,
        conditions(condition("Other", "False"), condition("GhostSandboxes", "False")),
        STRATEGIC,
      ),
      await patch(node, conditions(condition("GhostSandboxes", "True")), STRATEGIC),
      await patch(node, [{ op: "test", path: "/metadata/name", value: "another" }], JSON_PATCH),
      await patch(node, [{ op: "add", path: "/metadata/labels", value: { from: "json-patch" } }], JSON_PATCH),
      await patch(node, {}, "text/plain"),
    ];
    const { body } = await api.ask("GET", node);
    const { metadata, status } = body as {
      readonly metadata: { readonly annotations: Record<string, string>; readonly labels: object };
      readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string }[] };
    };
    const own = Object.entries(metadata.annotations).filter(([key]) => key.startsWith("unghost.dev/"));
    const seen = status.conditions
      .filter(({ type }) => ["GhostSandboxes", "Other"].includes(type))
      .map((one) => `${one.type} ${one.status}`)
      .toSorted();
    return { answers: answers.map(gist), own, labels: metadata.labels, seen };
  });
});

test("lists are paginated, selected by field and by label, and available as metadata only", async () => {
  await agree(async (api) => {
    for (const name of ["page-0", "page-1", "page-2"])
      await api.ask("POST", PODS, { body: pod(name, { set: "page" }) });
    const list = async (query: string, accept?: string) => {
      const answer = await api.ask("GET", `${PODS}?${query}`, accept === undefined ? {} : { accept });
      const { items = [], metadata } = answer.body as {
        readonly items?: readonly {
          readonly kind?: string;
          readonly spec?: object;
          readonly metadata: { readonly name: string };
        }[];
        readonly metadata: { readonly continue?: string; readonly remainingItemCount?: number };
      };
      return {
        gist: gist(answer),
        names: items.map(({ metadata: { name } }) => name),
        kinds: items.map(({ kind, spec }) => [kind, spec === undefined]),
        next: metadata.continue ?? "",
        remaining: metadata.remainingItemCount,
      };
    };
    const first = await list("labelSelector=set%3Dpage&limit=2");
    const plain = await list("limit=2");
    const second = await list(`limit=2&continue=${encodeURIComponent(plain.next)}`);
    const refused = await list(`limit=2&resourceVersion=5&continue=${encodeURIComponent(plain.next)}`);
    const others = [
      await list("resourceVersion=0&limit=1"),
      await list("fieldSelector=spec.nodeName%3Delsewhere&limit=500"),
      await list("fieldSelector=spec.nodeName%3Dnowhere"),
      await list("fieldSelector=metadata.name%3Dpage-1"),
      await list("labelSelector=set%21%3Dpage"),
      await list("labelSelector=set", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
    ];
    return [first, plain, second, refused, ...others].map((one) => ({ ...one, next: one.next !== "" }));
  });
});

test("a watch reports created, changed and deleted objects, and those that leave its selector", async () => {
  await agree(async (api) => {
    const { resourceVersion } = metadataOf(await api.ask("GET", PODS));
    const watching = await api.watch(
      `${PODS}?watch=true&labelSelector=set%3Dwatched&resourceVersion=${resourceVersion}`,
    );
    const label = (name: string, set: string) =>
      api.ask("PATCH", `${PODS}/${name}`, { body: { metadata: { labels: { set } } }, contentType: MERGE });
    const now = { body: { gracePeriodSeconds: 0 } };
    await api.ask("POST", PODS, { body: pod("seen", { set: "watched" }) });
    await api.ask("POST", PODS, { body: pod("unseen") });
    await label("seen", "other");
    await label("seen", "watched");
    await api.ask("PATCH", `${PODS}/seen`, { body: { metadata: { annotations: { a: "b" } } }, contentType: MERGE });
    const removed = await api.ask("DELETE", `${PODS}/seen`, now);
    await api.ask("DELETE", `${PODS}/unseen`, now);
    const isLast = () => (watching.lines.filter(({ type }) => type === "DELETED").length >= 2 ? true : undefined);
    await until("the pod is gone from the watch", WAIT_MS, isLast);
    watching.close();
    return [gist(removed), ...watching.lines.map(({ type, object }) => [type, object.kind, object.metadata?.name])];
  });
});

test("a watch with bookmarks gets them without an object", async () => {
  await agree(async (api) => {
    const { resourceVersion } = metadataOf(await api.ask("GET", PODS));
    const watching = await api.watch(
      `${PODS}?watch=true&allowWatchBookmarks=true&timeoutSeconds=6&resourceVersion=${resourceVersion}`,
    );
    await api.ask("POST", PODS, { body: pod("marked") });
    await watching.ended;
    const answered = watching.lines.map(({ type, object: { kind, metadata } }) => `${type} ${kind} ${metadata?.name}`);
    return [...new Set(answered)].toSorted();
  });
});

test("a watch ends at the timeout that the client requested", async () => {
  await agree(async (api) => {
    await api.ask("POST", PODS, { body: pod("there", { set: "there" }) });
    const watching = await api.watch(`${PODS}?watch=true&labelSelector=set%3Dthere&resourceVersion=0&timeoutSeconds=2`);
    await watching.ended;
    return watching.lines.map(({ type, object: { metadata } }) => [type, metadata?.name]);
  });
});

test("a list and a watch from an expired version are answered 410", async () => {
  const event = (name: string) => ({ metadata: { name }, involvedObject: { kind: "Node", name: "n2" } });
  const answered = await agree(async (api) => {
    for (const name of ["first", "second", "third"]) await api.ask("POST", EVENTS, { body: event(name) });
    const page = metadataOf(await api.ask("GET", `${EVENTS}?limit=1`));
    for (const name of ["fourth", "fifth"]) await api.ask("POST", EVENTS, { body: event(name) });
    await (api === servers[0] ? forget() : store.compact());
    const watching = await api.watch(`${EVENTS}?watch=true&timeoutSeconds=5&resourceVersion=${page.resourceVersion}`);
    await watching.ended;
    const next = await api.ask("GET", `${EVENTS}?limit=1&continue=${encodeURIComponent(String(page["continue"]))}`);
    return [
      gist(next),
      ...watching.lines.map(({ type, object: { kind, code, reason } }) => [type, kind, code, reason]),
    ];
  });
  expect(answered).toEqual([expect.objectContaining({ code: 410 }), ["ERROR", "Status", 410, "Expired"]]);
});

test("an event must be in the namespace of its object", async () => {
  const event = (name: string, involvedObject: object, metadata: object = {}) => ({
    apiVersion: "v1",
    kind: "Event",
    metadata: { name, ...metadata },
    involvedObject,
    reason: "GhostDetected",
    message: "text",
    type: "Warning",
    count: 1,
  });
  const answered = await agree(async (api) => {
    const answers = [
      await api.ask("POST", EVENTS, { body: event("about-pod", { kind: "Pod", namespace: "default", name: "web" }) }),
      await api.ask("POST", EVENTS, { body: event("about-node", { kind: "Node", name: "n1" }) }),
      await api.ask("POST", EVENTS, { body: event("astray", { kind: "Pod", namespace: "elsewhere", name: "web" }) }),
      await api.ask("POST", EVENTS, { body: event("astray", { kind: "Node", name: "n1" }, { namespace: "other" }) }),
      await api.ask("PATCH", `${EVENTS}/about-pod`, { body: { count: 2 }, contentType: MERGE }),
      await api.ask("GET", `${EVENTS}?resourceVersion=0&limit=1`),
      await api.ask("GET", `${EVENTS}?fieldSelector=involvedObject.kind%3DNode%2CinvolvedObject.name%3Dn1`),
    ];
    const [{ body }] = answers.slice(5) as [RawAnswer];
    return [...answers.map(gist), { code: (body as { readonly items: readonly unknown[] }).items.length }];
  });
  expect(answered.map(({ code }) => code).slice(0, 7)).toEqual([201, 201, 422, 400, 200, 200, 200]);
});
