import { existsSync, readFileSync } from "node:fs";
import { ContainerState, PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { bridgeNetwork } from "../cni-config.ts";
import type { LabNode } from "../node.ts";
import type { LabPod } from "../pods.ts";

/** A pod that no heal may harm, and its previous state. */
export type Protected =
  | { readonly kind: "ready"; readonly pod: LabPod; readonly pid: number; readonly address: string }
  | { readonly kind: "finished"; readonly pod: LabPod; readonly logs: ReadonlyMap<string, string> };

const CALL = { timeoutMs: 60_000 } as const;

export async function protectReady(node: LabNode, pod: LabPod): Promise<Protected> {
  return { kind: "ready", pod, ...(await lifeOf(node, pod)) };
}

export async function protectFinished(node: LabNode, pod: LabPod): Promise<Protected> {
  const logs = new Map<string, string>();
  for (const id of pod.containerIds) {
    const { status } = await node.cri.containerStatus(id, CALL);
    const path = status?.logPath ?? "";
    logs.set(path, readFileSync(node.path(path), "utf8"));
  }
  return { kind: "finished", pod, logs };
}

/** The changes of a pod that had to stay unchanged; empty if there are none. */
export async function harmTo(node: LabNode, guarded: Protected): Promise<readonly string[]> {
  const { pod } = guarded;
  const name = `${guarded.kind} pod ${pod.ref.name} (${pod.sandboxId})`;
  try {
    const harms = guarded.kind === "ready" ? await harmToReady(node, guarded) : await harmToFinished(node, guarded);
    return harms.map((harm) => `${name}: ${harm}`);
  } catch (error) {
    return [`${name}: ${error instanceof Error ? error.message : String(error)}`];
  }
}

async function harmToReady(node: LabNode, { pod, pid, address }: Protected & { kind: "ready" }): Promise<string[]> {
  const now = await lifeOf(node, pod);
  const harms: string[] = [];
  if (now.pid !== pid) harms.push(`its process was ${pid} and is ${now.pid}`);
  if (now.address !== address) harms.push(`its address was ${address} and is ${now.address}`);
  if (address !== "" && !holdsLease(node, pod, address)) harms.push(`its lease of ${address} is gone`);
  for (const id of pod.containerIds) {
    const { status } = await node.cri.containerStatus(id, CALL);
    if (status?.state !== ContainerState.CONTAINER_RUNNING) harms.push(`its container ${id} does not run`);
  }
  return harms;
}

async function harmToFinished(node: LabNode, { pod, logs }: Protected & { kind: "finished" }): Promise<string[]> {
  const harms: string[] = [];
  for (const id of pod.containerIds) {
    const { status } = await node.cri.containerStatus(id, CALL);
    if (status?.state !== ContainerState.CONTAINER_EXITED) harms.push(`its container ${id} is not there as it was`);
  }
  for (const [path, text] of logs) {
    const file = node.path(path);
    if (!existsSync(file) || readFileSync(file, "utf8") !== text) harms.push(`its log ${path} is gone or changed`);
  }
  return harms;
}

async function lifeOf(node: LabNode, pod: LabPod): Promise<{ readonly pid: number; readonly address: string }> {
  const { status, info } = await node.cri.podSandboxStatus(pod.sandboxId, CALL);
  if (status?.state !== PodSandboxState.SANDBOX_READY) throw new Error("it is not Ready");
  const { pid } = JSON.parse(info["info"] ?? "{}") as { readonly pid?: number };
  return { pid: pid ?? 0, address: status.network?.ip ?? "" };
}

function holdsLease(node: LabNode, pod: LabPod, address: string): boolean {
  const path = node.path(`/var/lib/cni/networks/${bridgeNetwork().name}/${address}`);
  return existsSync(path) && readFileSync(path, "utf8").startsWith(pod.sandboxId);
}
