import * as v from "valibot";
import type { Api } from "./api.ts";
import { KubeError } from "./kube-error.ts";

const ReadinessSchema = v.object({
  status: v.nullish(
    v.object({
      conditions: v.nullish(
        v.array(v.object({ type: v.string(), status: v.string(), message: v.nullish(v.string()) })),
      ),
    }),
  ),
});

/** The node's condition Ready. */
export interface NodeReadiness {
  readonly ready: boolean;
  readonly message: string;
}

/** Reads the current state, because the server's cache may lag behind. */
export async function readNodeReadiness(api: Api, name: string): Promise<NodeReadiness> {
  const path = `/api/v1/nodes/${encodeURIComponent(name)}`;
  const parsed = v.safeParse(ReadinessSchema, await api.get(path));
  if (!parsed.success) throw new KubeError("unreadable", `the API server's answer to ${path} is no node`);
  const condition = parsed.output.status?.conditions?.find(({ type }) => type === "Ready");
  return { ready: condition?.status === "True", message: condition?.message ?? "kubelet has not reported Ready yet" };
}
