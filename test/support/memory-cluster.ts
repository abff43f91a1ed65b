import { parseAddress } from "../../lab/stub-api/address.ts";
import { answer } from "../../lab/stub-api/answer.ts";
import { openStore, type Store } from "../../lab/stub-api/store.ts";
import type { Api } from "../../src/kube/api.ts";
import type { OpenCluster } from "../../src/kube/cluster-credentials.ts";
import { KubeError, type KubeErrorKind } from "../../src/kube/errors.ts";

/** The lab's API server without a socket, for virtual time. */
export interface MemoryCluster {
  readonly store: Store;
  readonly open: OpenCluster;
  /** Method and path with query of each request. */
  readonly requests: string[];
  /** Called before each request is processed: it may wait forever, or refuse. */
  before: (request: string) => Promise<void> | void;
}

const TYPES = {
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  json: "application/json-patch+json",
} as const;

export function memoryCluster(): MemoryCluster {
  const cluster: MemoryCluster = {
    store: openStore(),
    requests: [],
    before: () => undefined,
    open: () => Promise.resolve(api),
  };

  async function ask(method: string, path: string, body?: unknown, contentType = "application/json"): Promise<unknown> {
    const request = `${method} ${path}`;
    cluster.requests.push(request);
    await cluster.before(request);
    const url = new URL(path, "http://memory");
    const asked = { method, query: url.searchParams, accept: "", contentType, body, bookmarkMs: 0 };
    const reply = answer(cluster.store, parseAddress(url.pathname), asked);
    if (typeof reply === "function") throw new Error(`unexpected watch of ${path}`);
    if (reply.code > 202) throw new KubeError(KINDS[reply.code] ?? "unreadable", JSON.stringify(reply.body));
    // Copied like over a network: no object is shared with the server.
    return structuredClone(reply.body);
  }

  const api: Api = {
    get: (path) => ask("GET", path),
    create: (path, body) => ask("POST", path, body),
    replace: (path, body) => ask("PUT", path, body),
    patch: (path, body, kind) => ask("PATCH", path, body, TYPES[kind]),
    apply: (path, body) => ask("PATCH", path, body, "application/apply-patch+yaml"),
    delete: (path, body) => ask("DELETE", path, body),
    watch: (path) => {
      throw new Error(`unexpected watch of ${path}`);
    },
    stream: (path) => {
      throw new Error(`unexpected stream of ${path}`);
    },
    close: () => undefined,
  };
  return cluster;
}

const KINDS: Readonly<Record<number, KubeErrorKind>> = { 404: "not-found", 409: "conflict", 410: "expired" };
