import * as v from "valibot";
import { CONDITION_TYPE } from "../../fleet/shared-counts.ts";
import type { Api } from "../../kube/api.ts";
import { KubeError } from "../../kube/kube-error.ts";
import { apiTime } from "./api-time.ts";
import type { Condition } from "./condition.ts";

const NodeSchema = v.object({
  status: v.nullish(
    v.object({
      conditions: v.nullish(
        v.array(
          v.object({
            type: v.string(),
            status: v.string(),
            reason: v.nullish(v.string()),
            message: v.nullish(v.string()),
            lastHeartbeatTime: v.nullish(v.string()),
            lastTransitionTime: v.nullish(v.string()),
          }),
        ),
      ),
      nodeInfo: v.nullish(v.object({ machineID: v.nullish(v.string()), bootID: v.nullish(v.string()) })),
    }),
  ),
});

/** The condition on the Node object, by any writer. */
export interface StandingCondition {
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly heartbeatAt: Date;
  readonly turnedAt: Date;
}

export interface ConditionedNode {
  readonly machineId: string;
  readonly bootId: string;
  readonly condition: StandingCondition | undefined;
}

export async function readNode(api: Api, node: string): Promise<ConditionedNode> {
  const path = nodePath(node);
  const result = v.safeParse(NodeSchema, await api.get(path));
  if (!result.success) throw new KubeError("unreadable", `the API server's answer to ${path} is no node`);
  const { conditions, nodeInfo } = result.output.status ?? {};
  const found = conditions?.find(({ type }) => type === CONDITION_TYPE);
  return {
    machineId: nodeInfo?.machineID ?? "",
    bootId: nodeInfo?.bootID ?? "",
    condition: found && {
      status: found.status,
      reason: found.reason ?? "",
      message: found.message ?? "",
      heartbeatAt: new Date(found.lastHeartbeatTime ?? 0),
      turnedAt: new Date(found.lastTransitionTime ?? 0),
    },
  };
}

export interface ConditionTimes {
  readonly heartbeatAt: Date;
  readonly turnedAt: Date;
}

/** Conditions are merged by type: kubelet's own are not touched. */
export async function patchCondition(
  api: Api,
  node: string,
  { status, reason, message }: Condition,
  { heartbeatAt, turnedAt }: ConditionTimes,
): Promise<void> {
  const condition = {
    type: CONDITION_TYPE,
    status,
    reason,
    message,
    lastHeartbeatTime: apiTime(heartbeatAt),
    lastTransitionTime: apiTime(turnedAt),
  };
  await api.patch(`${nodePath(node)}/status`, { status: { conditions: [condition] } }, "strategic");
}

export async function deleteCondition(api: Api, node: string): Promise<void> {
  const condition = { type: CONDITION_TYPE, $patch: "delete" };
  await api.patch(`${nodePath(node)}/status`, { status: { conditions: [condition] } }, "strategic");
}

function nodePath(node: string): string {
  return `/api/v1/nodes/${encodeURIComponent(node)}`;
}
