import { existsSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { PodRef } from "../src/snapshot/ids.ts";
import type { LabNode } from "./node.ts";
import { until } from "./poll.ts";

/**
 * A small API server inside the node: lists with field selectors and pages, single objects, DELETE with a uid. Objects
 * are kept on the node's disk; the server is a process and must be started after each boot.
 */
const PORT = 8001;
const STUB_API_URL = `http://127.0.0.1:${PORT}`;
export const STUB_KUBECONFIG = "/etc/lab-api/kubeconfig";

const STATE_DIR = "/var/lib/lab-api";
const READY_FILE = "/run/lab-api.pid";
const SERVER = join(import.meta.dirname, "stub-api/server.ts");
const START_MS = 60_000;

export async function startStubApi(node: LabNode): Promise<void> {
  await node.writeFile(STUB_KUBECONFIG, JSON.stringify(kubeconfig()));
  await apiHas(node, "/api/v1/namespaces/default", { metadata: { name: "default" } });
  await apiHas(node, `/api/v1/nodes/${node.hostname}`, nodeObject(node));
  const server = `${process.execPath} ${SERVER} ${STATE_DIR} ${PORT} ${READY_FILE}`;
  await node.check(["sh", "-c", `setsid ${server} </dev/null >>/var/log/lab-api.log 2>&1 &`]);
  await until("the stub API listens", START_MS, () => (existsSync(node.livePath(READY_FILE)) ? true : undefined));
}

export async function stopStubApi(node: LabNode): Promise<void> {
  await node.kill(Number(readFileSync(node.livePath(READY_FILE), "utf8")));
  await rm(node.livePath(READY_FILE), { force: true });
}

/** How the API behaves from now on: well, silent, or answering everything with this code. */
export async function setApiMood(node: LabNode, mood: "well" | "hang" | "401" | "500"): Promise<void> {
  await node.writeFile(`${STATE_DIR}/mood`, mood === "well" ? "" : mood);
}

/** Any object by its address, such as `/api/v1/namespaces/default/pods/web`. */
export function apiHas(node: LabNode, address: string, object: object): Promise<void> {
  return node.writeFile(`${STATE_DIR}/objects${address}.json`, JSON.stringify(object));
}

/** Where an object lies, for whoever plays a controller. */
export function objectFile(node: LabNode, address: string): string {
  return node.path(`${STATE_DIR}/objects${address}.json`);
}

export function isInApi(node: LabNode, address: string): boolean {
  return existsSync(objectFile(node, address));
}

/** What differs from an ordinary running pod, merged into its object. */
export interface PodObjectParts {
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
}

/** From now on the API knows this pod, bound to this node. */
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

/** What the API was asked since it was last looked at: method, path and query, one line each. */
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
  return { kind: "Node", apiVersion: "v1", metadata: { name: node.hostname }, status: { nodeInfo: { machineID } } };
}

function kubeconfig(): unknown {
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "lab", cluster: { server: STUB_API_URL } }],
    users: [{ name: "lab", user: {} }],
    contexts: [{ name: "lab", context: { cluster: "lab", user: "lab" } }],
    "current-context": "lab",
  };
}
