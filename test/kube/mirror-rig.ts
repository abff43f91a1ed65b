import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, vi } from "vitest";
import { type Authority, type KeyPair, makeAuthority } from "../../lab/stub-api/certificates.ts";
import type { Mood } from "../../lab/stub-api/faults.ts";
import { type StubApi, serveStubApi } from "../../lab/stub-api/serve.ts";
import { openStore, type Store } from "../../lab/stub-api/store.ts";
import type { ApiPod, ClusterFacts } from "../../src/kube/cluster-facts.ts";
import { type ClusterMirror, openClusterMirror, type Trust } from "../../src/kube/mirror.ts";
import { base64 } from "./rig.ts";
import { nodeObject, podObject } from "./stub-server.ts";

const HANG_GUARD_MS = 30_000;

/** A cluster in memory, its server, and a mirror of one of its nodes. */
export interface MirrorRig {
  readonly store: Store;
  readonly api: StubApi;
  readonly mirror: ClusterMirror;
  readonly kubeconfig: string;
  readonly changes: () => number;
  setMood(mood: Mood): void;
  /** The token that the server accepts from now on, and the one of the node. */
  setTokens(tokens: { readonly server: string; readonly file: string }): void;
  facts(hasDeadSandboxes?: boolean): Promise<ClusterFacts>;
  failure(hasDeadSandboxes?: boolean): Promise<string | undefined>;
  /** Waits until the mirror has it. */
  until(shown: (pods: readonly ApiPod[]) => boolean): Promise<void>;
  /** Requests since the last call. */
  takeRequests(): readonly string[];
}

export interface MirrorRigOptions {
  readonly trust?: Trust;
  readonly fill?: (store: Store) => void;
  readonly user?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  /** The initial behaviour of the server. */
  readonly mood?: Mood;
}

let known: { readonly authority: Authority; readonly serving: KeyPair } | undefined;

/** Cached, because every key takes openssl a moment. */
function identity(): { readonly authority: Authority; readonly serving: KeyPair } {
  if (known !== undefined) return known;
  const dir = mkdtempSync(join(tmpdir(), "unghost-mirror-ca-"));
  const authority = makeAuthority(dir, "cluster");
  known = { authority, serving: authority.issue("/CN=api", { san: "IP:127.0.0.1" }) };
  rmSync(dir, { recursive: true, force: true });
  return known;
}

export async function mirrorRig(options: MirrorRigOptions = {}): Promise<MirrorRig> {
  const { trust, fill, user, timeoutMs = 20_000 } = options;
  const dir = mkdtempSync(join(tmpdir(), "unghost-mirror-"));
  const store = openStore();
  let { mood = "well" } = options;
  let token = "first";
  writeFileSync(join(dir, "token"), token);
  store.put("/api/v1/nodes/n1", nodeObject());
  store.put("/api/v1/namespaces/default", { metadata: { name: "default" } });
  putPod(store, "web-1");
  fill?.(store);
  // A token is sent only over verified connections.
  const { authority, serving } = identity();
  const api = await serveStubApi({
    store,
    mood: () => mood,
    token: () => (user === undefined ? token : undefined),
    tls: serving,
  });
  const kubeconfig = {
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    clusters: [{ name: "c", cluster: { server: api.url, "certificate-authority-data": base64(authority.cert) } }],
    users: [{ name: "u", user: user ?? { tokenFile: "token" } }],
  };
  writeFileSync(join(dir, "kubeconfig"), JSON.stringify(kubeconfig));
  const mirror = openClusterMirror({
    credentials: { kind: "kubeconfig", path: join(dir, "kubeconfig") },
    readText: (path) => ({ kind: "text", text: readFileSync(path, "utf8") }),
    node: "n1",
    limits: { timeoutMs },
    ...(trust === undefined ? {} : { trust }),
  });
  let changes = 0;
  mirror.onChange(() => {
    changes += 1;
  });
  onTestFinished(async () => {
    mirror.close();
    await api.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const ask = (hasDeadSandboxes: boolean) => mirror.ask({ hasDeadSandboxes: Promise.resolve(hasDeadSandboxes) });
  let taken = 0;
  return {
    store,
    api,
    mirror,
    kubeconfig: join(dir, "kubeconfig"),
    changes: () => changes,
    setMood: (next) => {
      mood = next;
    },
    setTokens: ({ server, file }) => {
      token = server;
      writeFileSync(join(dir, "token"), file);
    },
    facts: async (hasDeadSandboxes = false) => {
      const answer = await ask(hasDeadSandboxes);
      if (answer.kind === "failed") throw new Error(answer.reason);
      return answer.facts;
    },
    failure: async (hasDeadSandboxes = false) => {
      const answer = await ask(hasDeadSandboxes);
      return answer.kind === "failed" ? answer.reason : undefined;
    },
    until: async (shown) => {
      const check = async (): Promise<void> => {
        const answer = await ask(false);
        expect(answer.kind === "answered" && shown(answer.facts.pods)).toBe(true);
      };
      await vi.waitFor(check, { timeout: HANG_GUARD_MS, interval: 20 });
    },
    takeRequests: () => {
      const since = api.requests.slice(taken);
      taken = api.requests.length;
      return since;
    },
  };
}

/** Trusts its data for as long as any test takes. */
export const TRUSTING: Trust = { brokenMs: 60_000, silentMs: 600_000, silentWhileUnhealthyMs: 600_000 };

export function putPod(store: Store, name: string, parts: object = {}): void {
  store.put(podPath(name), { ...podObject({ name, uid: `uid-${name}` }), ...parts });
}

export function podPath(name: string): string {
  return `/api/v1/namespaces/default/pods/${name}`;
}
