import * as v from "valibot";
import { type Api, getObject } from "./api.ts";
import { unlessMissing } from "./errors.ts";
import { isDown, isIgnored, NamespaceSchema, PodSchema, podState } from "./objects.ts";

/** The state of a pod that is checked just before it is deleted. */
export interface FreshPod {
  readonly uid: string;
  readonly node: string;
  readonly controller?: string;
  /** According to kubelet's last report, one of its containers has crashed and does not run now. */
  readonly down: boolean;
  /** Kubelet has not started a container of it yet. */
  readonly pending: boolean;
  readonly terminating: boolean;
  readonly ignored: boolean;
}

interface PodName {
  readonly namespace: string;
  readonly name: string;
}

/** Bypasses the server's cache; returns undefined if the pod does not exist. */
export async function getPod(api: Api, { namespace, name }: PodName): Promise<FreshPod | undefined> {
  const pod = await unlessMissing(getObject(api, podPath({ namespace, name }), PodSchema, "pod"));
  if (pod === undefined) return undefined;
  const { metadata, spec, status } = pod;
  const state = podState(pod);
  return {
    uid: metadata.uid,
    node: spec?.nodeName ?? "",
    terminating: Boolean(metadata.deletionTimestamp),
    ignored: isIgnored(metadata),
    controller: state.controller,
    down: isDown(state),
    pending: status?.phase === "Pending",
  };
}

/** Whether a namespace carries unghost.dev/ignore. */
export async function isNamespaceIgnored(api: Api, namespace: string): Promise<boolean> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
  return isIgnored((await getObject(api, path, NamespaceSchema, "namespace")).metadata);
}

/** Deletes the pod with its uid as precondition and its own grace period. */
export async function deletePod(api: Api, pod: PodName & { readonly uid: string }): Promise<void> {
  const options = { kind: "DeleteOptions", apiVersion: "v1", preconditions: { uid: pod.uid } };
  await unlessMissing(api.delete(podPath(pod), options));
}

function podPath({ namespace, name }: PodName): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;
}

const ReadinessSchema = v.object({
  status: v.nullish(
    v.object({
      conditions: v.nullish(
        v.array(v.object({ type: v.string(), status: v.string(), message: v.nullish(v.string()) })),
      ),
    }),
  ),
});

/** The node's condition Ready. Reads the current state, because the server's cache may lag behind. */
export async function readNodeReadiness(
  api: Api,
  name: string,
): Promise<{ readonly ready: boolean; readonly message: string }> {
  const path = `/api/v1/nodes/${encodeURIComponent(name)}`;
  const { status } = await getObject(api, path, ReadinessSchema, "node");
  const condition = status?.conditions?.find(({ type }) => type === "Ready");
  return { ready: condition?.status === "True", message: condition?.message ?? "kubelet has not reported Ready yet" };
}
