import { existsSync, globSync, readFileSync } from "node:fs";
import { expect } from "vitest";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { type LabPod, runPod } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { apiHas, apiKnows, objectFile, STUB_KUBECONFIG, startStubApi } from "../../lab/stub-api.ts";
import { CALL, start } from "../lab/real-node.ts";
import { GUARD_MS, UNGHOST } from "./unghost.ts";

const CLASS = "libcni-result-cache-corrupt";
const CONFIG = "/etc/unghost/agent.yaml";
const LOG = "/var/log/unghost-agent.log";
const PORT = 20258;
const READY = { type: "Ready", status: "True", reason: "KubeletReady", message: "" };

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
  readonly lastHeartbeatTime: string;
}

interface Event {
  readonly reason: string;
  readonly count: number;
  readonly involvedObject: { readonly kind: string; readonly name: string };
}

/** A node with an API, a running pod and a Node object with kubelet's conditions. */
export async function nodeInCluster(): Promise<{ readonly node: LabNode; readonly pod: LabPod }> {
  const node = await start();
  await startStubApi(node);
  await kubeletReports(node, node.hostname, { conditions: [READY] });
  const pod = await runPod(node, { name: "web", containers: [{ name: "main" }] });
  await apiKnows(node, pod.ref);
  return { node, pod };
}

/** Writes a Node object like a kubelet, with additional content. */
export async function kubeletReports(
  node: LabNode,
  name: string,
  {
    conditions = [],
    annotations = {},
  }: { readonly conditions?: readonly object[]; readonly annotations?: object } = {},
): Promise<void> {
  const machineID = name === node.hostname ? readFileSync(node.path("/etc/machine-id"), "utf8").trim() : name;
  await apiHas(node, `/api/v1/nodes/${name}`, {
    metadata: { name, uid: `uid-of-${name}`, annotations },
    status: { nodeInfo: { machineID }, conditions },
  });
}

/** Returns its process id in the node. */
export async function startAgent(node: LabNode, mode: "observe" | "heal"): Promise<number> {
  await policy(node, mode);
  const args = [
    "agent",
    "--config",
    CONFIG,
    "--kubeconfig",
    STUB_KUBECONFIG,
    "--scan-every",
    "500ms",
    "--min-age",
    "0s",
  ];
  const command = `setsid ${UNGHOST} ${args.join(" ")} </dev/null >>${LOG} 2>&1 & echo $!`;
  return Number(await node.check(["sh", "-c", command]));
}

export function policy(node: LabNode, mode: "observe" | "heal"): Promise<void> {
  return node.writeFile(CONFIG, JSON.stringify({ agent: { classes: { [CLASS]: { mode } } } }));
}

/** A pod that cannot be stopped, as after a power cut that tore its cache. */
export async function makeGhost(node: LabNode, pod: LabPod): Promise<string> {
  const { path = "" } = await emptyResultCache(node, pod);
  await expect(node.cri.stopPodSandbox(pod.sandboxId, CALL)).rejects.toThrow();
  return path;
}

export function conditionsOf(node: LabNode): readonly Condition[] {
  return JSON.parse(readFileSync(objectFile(node, `/api/v1/nodes/${node.hostname}`), "utf8")).status.conditions;
}

export function ghostsOf(node: LabNode): Condition | undefined {
  return conditionsOf(node).find(({ type }) => type === "GhostSandboxes");
}

export function condition(node: LabNode, reason: string, timeoutMs = GUARD_MS): Promise<Condition> {
  return until(`the condition has the reason ${reason}`, timeoutMs, () => {
    const now = ghostsOf(node);
    return now?.reason === reason ? now : undefined;
  });
}

export function eventsOf(node: LabNode): readonly string[] {
  const files = globSync(objectFile(node, "/api/v1/namespaces/*/events/*"));
  return files
    .map((file): Event => JSON.parse(readFileSync(file, "utf8")))
    .map(({ reason, involvedObject: { kind, name }, count }) => `${reason} ${kind} ${name} ×${count}`)
    .toSorted();
}

export function isWrite(request: string): boolean {
  return !request.startsWith("GET");
}

/** Undefined while the agent does not listen yet. */
export async function metric(node: LabNode, name: string): Promise<number | undefined> {
  const { stdout } = await node.exec(["curl", "-sS", `http://127.0.0.1:${PORT}/metrics`]);
  const value = new RegExp(`^${name} (.*)$`, "m").exec(stdout)?.[1];
  return value === undefined ? undefined : Number(value);
}

export async function scans(node: LabNode, howMany: number): Promise<void> {
  const counted = () => metric(node, "unghost_scan_duration_seconds_count");
  const before = await until("the agent listens", GUARD_MS, counted);
  await until(`${howMany} more scans`, GUARD_MS, async () =>
    ((await counted()) ?? 0) >= before + howMany ? true : undefined,
  );
}

export function logged(node: LabNode, text: string): boolean {
  return existsSync(node.path(LOG)) && readFileSync(node.path(LOG), "utf8").includes(text);
}
