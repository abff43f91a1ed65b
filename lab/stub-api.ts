import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PodRef } from "../src/node/types/ids.ts";
import type { LabNode } from "./node.ts";
import { until } from "./poll.ts";
import { makeAuthority } from "./stub-api/certificates.ts";
import type { Mood } from "./stub-api/faults.ts";

/**
 * A small API server inside the node. Objects are stored on the node's disk; the server is a process and must be
 * started after each boot.
 */
export const API_PORT = 8001;
export const STUB_KUBECONFIG = "/etc/lab-api/kubeconfig";
/** The CA certificate of the server, if it has one. */
export const STUB_CA = "/etc/lab-api/ca.crt";

const STATE_DIR = "/var/lib/lab-api";
const READY_FILE = "/run/lab-api.pid";
const SERVER = join(import.meta.dirname, "stub-api/server.ts");
const START_MS = 60_000;

/** The server's certificate: none, or one that is valid or not by the clock. */
export type StubIdentity = "none" | "valid" | "not-yet-valid" | "expired";

export async function startStubApi(node: LabNode, identity: StubIdentity = "none"): Promise<void> {
  const trust = await identify(node, identity);
  const server = `${trust === undefined ? "http" : "https"}://127.0.0.1:${API_PORT}`;
  await node.writeFile(STUB_KUBECONFIG, JSON.stringify(kubeconfig(server, trust)));
  await apiHas(node, "/api/v1/namespaces/default", { metadata: { name: "default" } });
  await apiHas(node, `/api/v1/nodes/${node.hostname}`, nodeObject(node));
  const program = `${process.execPath} ${SERVER} ${STATE_DIR} ${API_PORT} ${READY_FILE}`;
  await node.check(["sh", "-c", `setsid ${program} </dev/null >>/var/log/lab-api.log 2>&1 &`]);
  await until("the stub API listens", START_MS, () => (existsSync(node.livePath(READY_FILE)) ? true : undefined));
}

export async function stopStubApi(node: LabNode): Promise<void> {
  await node.kill(Number(readFileSync(node.livePath(READY_FILE), "utf8")));
  await rm(node.livePath(READY_FILE), { force: true });
}

/** Sets the behaviour of the API from now on. */
export function setApiMood(node: LabNode, mood: Mood): Promise<void> {
  return node.writeFile(`${STATE_DIR}/mood`, mood);
}

/** Any object by its path, such as `/api/v1/namespaces/default/pods/web`. */
export function apiHas(node: LabNode, address: string, object: object): Promise<void> {
  return node.writeFile(`${STATE_DIR}/objects${address}.json`, JSON.stringify(object));
}

/** The path of an object, for tests that act as a controller. */
export function objectFile(node: LabNode, address: string): string {
  return node.path(`${STATE_DIR}/objects${address}.json`);
}

export function isInApi(node: LabNode, address: string): boolean {
  return existsSync(objectFile(node, address));
}

/** Differences from an ordinary running pod, merged into its object. */
export interface PodObjectParts {
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
}

/** Adds this pod to the API, bound to this node. */
export function apiKnows(node: LabNode, pod: PodRef, parts: PodObjectParts = {}): Promise<void> {
  const object = {
    kind: "Pod",
    apiVersion: "v1",
    metadata: {
      name: pod.name,
      namespace: pod.namespace,
      uid: pod.uid,
      resourceVersion: "1",
      annotations: {},
      ...parts.metadata,
    },
    spec: { nodeName: node.hostname, containers: [{ name: "main", image: "unghost.lab/pause:1" }], ...parts.spec },
    status: { phase: "Running", ...parts.status },
  };
  return apiHas(node, podAddress(pod), object);
}

export function apiForgets(node: LabNode, pod: PodRef): Promise<void> {
  return rm(node.path(`${STATE_DIR}/objects${podAddress(pod)}.json`), { force: true });
}

/** Requests since the last call: method, path and query, one line each. */
export async function askedOfApi(node: LabNode): Promise<readonly string[]> {
  const file = node.path(`${STATE_DIR}/requests`);
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").trim().split("\n");
  await rm(file);
  return lines;
}

export function podAddress({ namespace, name }: Pick<PodRef, "namespace" | "name">): string {
  return `/api/v1/namespaces/${namespace}/pods/${name}`;
}

function nodeObject(node: LabNode): object {
  const machineID = readFileSync(node.path("/etc/machine-id"), "utf8").trim();
  const metadata = { name: node.hostname, uid: `uid-of-${node.hostname}` };
  return { kind: "Node", apiVersion: "v1", metadata, status: { nodeInfo: { machineID } } };
}

const HOUR_MS = 60 * 60 * 1000;

const VALIDITY: Readonly<Record<Exclude<StubIdentity, "none">, object>> = {
  valid: {},
  "not-yet-valid": { validFromMs: HOUR_MS },
  expired: { validUntilMs: -HOUR_MS },
};

/** Returns the CA certificate of the server. */
async function identify(node: LabNode, identity: StubIdentity): Promise<string | undefined> {
  await Promise.all(["crt", "key"].map((part) => rm(node.path(`${STATE_DIR}/tls.${part}`), { force: true })));
  if (identity === "none") return undefined;
  const dir = mkdtempSync(join(tmpdir(), "lab-api-"));
  try {
    const authority = makeAuthority(dir, "lab");
    const { cert, key } = authority.issue("/CN=lab-api", { san: "IP:127.0.0.1", ...VALIDITY[identity] });
    await node.writeFile(`${STATE_DIR}/tls.crt`, cert);
    await node.writeFile(`${STATE_DIR}/tls.key`, key);
    await node.writeFile(STUB_CA, authority.cert);
    return authority.cert;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

function kubeconfig(server: string, trust: string | undefined): unknown {
  const ca = trust === undefined ? {} : { "certificate-authority-data": Buffer.from(trust).toString("base64") };
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "lab", cluster: { server, ...ca } }],
    users: [{ name: "lab", user: {} }],
    contexts: [{ name: "lab", context: { cluster: "lab", user: "lab" } }],
    "current-context": "lab",
  };
}
