import * as v from "valibot";
import { printable } from "../../host/text.ts";
import { type Api, getObject } from "../../kube/api.ts";

/** What decides whether a pod can run on a node, and how it is reached otherwise. */
export interface Target {
  readonly name: string;
  /** An address, or its name. */
  readonly address: string;
  readonly osImage: string;
  readonly isLinux: boolean;
  /** `Unknown` when its kubelet has stopped reporting. */
  readonly ready: { readonly status: string; readonly since?: string };
}

const NodeSchema = v.object({
  metadata: v.object({ name: v.string() }),
  status: v.optional(
    v.object({
      addresses: v.nullish(v.array(v.object({ type: v.string(), address: v.string() })), []),
      nodeInfo: v.optional(v.object({ osImage: v.optional(v.string()), operatingSystem: v.optional(v.string()) })),
      conditions: v.nullish(
        v.array(v.object({ type: v.string(), status: v.string(), lastTransitionTime: v.optional(v.string()) })),
        [],
      ),
    }),
  ),
});

export async function readTarget(api: Api, node: string): Promise<Target> {
  const path = `/api/v1/nodes/${encodeURIComponent(node)}`;
  const { metadata, status } = await getObject(api, path, NodeSchema, "node");
  const { addresses = [], nodeInfo, conditions = [] } = status ?? {};
  const addressOf = (type: string) => addresses?.find((one) => one.type === type)?.address;
  const ready = conditions?.find(({ type }) => type === "Ready");
  return {
    name: metadata.name,
    address: printable(addressOf("InternalIP") ?? addressOf("ExternalIP") ?? addressOf("Hostname") ?? metadata.name),
    osImage: nodeInfo?.osImage ?? "",
    isLinux: (nodeInfo?.operatingSystem ?? "linux") === "linux",
    ready: { status: ready?.status ?? "Unknown", since: ready?.lastTransitionTime },
  };
}
