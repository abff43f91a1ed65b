import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Authority, makeAuthority } from "../../lab/stub-api/certificates.ts";
import type { ReadText } from "../../src/kube/access.ts";
import { askCluster } from "../../src/kube/cluster.ts";
import type { ClusterAnswer, ClusterFacts } from "../../src/kube/cluster-facts.ts";
import {
  type Asked,
  listOf,
  nodeObject,
  podObject,
  type Reply,
  type StubServer,
  startStub,
  statusOf,
} from "./stub-server.ts";

export const PODS = "/api/v1/pods";
export const NODE = "/api/v1/nodes/n1";
export const NAMESPACES = "/api/v1/namespaces";

export interface Asking {
  readonly node?: string;
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
  readonly maxValues?: number;
  readonly trust?: string;
  readonly user?: Readonly<Record<string, string>>;
  readonly server?: string;
  /** More settings of the cluster. */
  readonly cluster?: Readonly<Record<string, unknown>>;
  /** Whether the runtime lists a dead sandbox. */
  readonly hasDeadSandboxes?: boolean;
}

type Special = Readonly<Record<string, (asked: Asked) => Reply>>;

/** A cluster with one server at a time, and a client with a kubeconfig. */
export interface Rig {
  readonly ca: Authority;
  readonly kubeconfig: string;
  /** Answers for the given paths; the others are as in an ordinary small cluster. */
  serve(special?: Special): Promise<StubServer>;
  serveWith(
    answer: (asked: Asked) => Reply,
    tls?: { readonly cert: string; readonly key: string },
  ): Promise<StubServer>;
  ask(asking?: Asking): Promise<ClusterAnswer>;
  askFacts(asking?: Asking): Promise<ClusterFacts>;
  stop(): Promise<void>;
  remove(): void;
}

export function makeRig(): Rig {
  const dir = mkdtempSync(join(tmpdir(), "unghost-kube-"));
  const ca = makeAuthority(dir, "cluster");
  const kubeconfig = join(dir, "kubeconfig");
  const readText: ReadText = (path) => ({ kind: "text", text: readFileSync(path, "utf8") });
  let stub: StubServer | undefined;

  async function serveWith(answer: (asked: Asked) => Reply, tls?: { readonly cert: string; readonly key: string }) {
    stub = await startStub(answer, tls === undefined ? undefined : { ...tls, ca: ca.cert });
    return stub;
  }

  async function ask(asking: Asking = {}): Promise<ClusterAnswer> {
    const {
      node = "n1",
      timeoutMs = 20_000,
      maxBytes,
      maxValues,
      trust = ca.cert,
      user = { token: "secret" },
    } = asking;
    const server = asking.server ?? stub?.url;
    const cluster = { server, "certificate-authority-data": base64(trust), ...asking.cluster };
    const config = {
      "current-context": "c",
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      clusters: [{ name: "c", cluster }],
      users: [{ name: "u", user }],
    };
    writeFileSync(kubeconfig, JSON.stringify(config));
    const limits = { timeoutMs, maxBytes, maxValues };
    const hasDeadSandboxes = Promise.resolve(asking.hasDeadSandboxes ?? true);
    return await askCluster({
      credentials: { kind: "kubeconfig", path: kubeconfig },
      readText,
      node,
      limits,
      hasDeadSandboxes,
    });
  }

  return {
    ca,
    kubeconfig,
    serve: (special = {}) => serveWith((asked) => (special[asked.path] ?? ordinary)(asked)),
    serveWith,
    ask,
    askFacts: async (asking = {}) => {
      const answer = await ask(asking);
      if (answer.kind === "failed") throw new Error(answer.reason);
      return answer.facts;
    },
    stop: async () => {
      await stub?.close();
      stub = undefined;
    },
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}

export function ordinary({ path }: Asked): Reply {
  if (path === PODS) return { body: listOf([podObject({ name: "web-1", uid: "310e3cd6" })]) };
  if (path === NODE) return { body: nodeObject() };
  if (path === NAMESPACES) return { body: listOf([{ metadata: { name: "default" } }]) };
  return statusOf(404, "not found");
}

export function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
