import { truncate } from "node:fs/promises";
import { type PodRef, type SandboxId, sandboxId } from "../../src/node/types/ids.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { MULTUS_CACHE_DIR, setDelegate } from "../multus.ts";
import type { LabNode } from "../node.ts";
import { type LabPod, type PodSpec, podRef, runPod, sandboxConfig } from "../pods.ts";
import { apiKnows } from "../stub-api.ts";
import type { Injected } from "./injected.ts";

const CALL = { timeoutMs: 60_000 };

/** All of these need useMultus() on the node first. */
export interface MultusGhost extends Injected {
  readonly ref: PodRef;
  readonly sandboxId: SandboxId;
}

/** A pod on multus: the API must have it, or multus gives it no network and writes no cache. */
export async function runMultusPod(node: LabNode, spec: PodSpec): Promise<LabPod> {
  const ref = podRef(spec);
  await apiKnows(node, ref);
  return runPod(node, { ...spec, uid: ref.uid });
}

/**
 * The multus cache of a healthy pod is lost in a power cut. multus 4 then calls no delegate on DEL, and their address
 * leaks.
 */
export async function emptyMultusCache(node: LabNode, pod: LabPod): Promise<MultusGhost> {
  const path = `${MULTUS_CACHE_DIR}/${pod.sandboxId}`;
  await truncate(node.path(path), 0);
  return { fault: "empty-multus-cache", did: `emptied ${path}`, ref: pod.ref, sandboxId: pod.sandboxId, path };
}

/**
 * The first DEL fails and still deletes the cache; each later one is rebuilt from the API, where the pod still exists,
 * without what the delegate needs.
 */
export async function consumedMultusCache(node: LabNode, spec: PodSpec): Promise<MultusGhost> {
  const pod = await runMultusPod(node, spec);
  await mustFail(`DEL of ${pod.ref.name}`, node.cri.stopPodSandbox(pod.sandboxId, CALL));
  const did = `let the first DEL of ${pod.ref.namespace}/${pod.ref.name} use up its multus cache`;
  return { fault: "consumed-multus-cache", did, ref: pod.ref, sandboxId: pod.sandboxId };
}

/**
 * The deadlock: ADD fails in the delegate, and so does the rollback. containerd 1.6 keeps the sandbox with its name
 * forever; a 2.x releases it: undefined. The delegate works again after that, but the sandbox stays stuck.
 */
export async function multusDeadlock(node: LabNode, spec: PodSpec): Promise<MultusGhost | undefined> {
  const ref = podRef(spec);
  await apiKnows(node, ref);
  await setDelegate(node, "incomplete");
  await mustFail(`ADD of ${ref.name}`, node.cri.runPodSandbox(sandboxConfig(spec, ref), CALL));
  await setDelegate(node, "complete");
  const listed = await node.cri.listPodSandbox({ labelSelector: { "io.kubernetes.pod.uid": ref.uid } }, CALL);
  const left = listed[0];
  if (left === undefined) return undefined;
  const did = `let ADD and roll-back of ${ref.namespace}/${ref.name} fail in a multus delegate`;
  return { fault: "multus-deadlock", did, ref, sandboxId: sandboxId(left.id) };
}

async function mustFail(what: string, call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (error instanceof RuntimeError && error.kind === "refused") return;
    throw error;
  }
  throw new Error(`the ${what} was expected to fail in multus and did not`);
}
