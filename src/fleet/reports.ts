import * as v from "valibot";
import type { Api } from "../kube/api.ts";
import { listAll } from "../kube/list.ts";
import type { NodeHealth } from "./breaker.ts";

/** The type of the node condition that every agent publishes. */
export const CONDITION_TYPE = "GhostSandboxes";

const ConditionSchema = v.object({
  type: v.string(),
  status: v.string(),
  lastTransitionTime: v.nullish(v.string()),
  lastHeartbeatTime: v.nullish(v.string()),
});

/** A Node is tens of kilobytes, mostly image names: it is reduced to a few bytes before the next page is requested. */
const ReportSchema = v.pipe(
  v.object({ status: v.nullish(v.object({ conditions: v.nullish(v.array(ConditionSchema)) })) }),
  v.transform(({ status }): NodeHealth | undefined => {
    const condition = status?.conditions?.find(({ type }) => type === CONDITION_TYPE);
    if (!condition?.lastHeartbeatTime || !condition.lastTransitionTime) return undefined;
    return {
      ill: condition.status === "True",
      turnedAt: new Date(condition.lastTransitionTime),
      heartbeatAt: new Date(condition.lastHeartbeatTime),
    };
  }),
);

const PAGE_SIZE = 100;

/**
 * The reports of all nodes. Not with resourceVersion=0: a server that answers from its cache ignores the page size, and
 * a thousand nodes at once exceed the agent's memory.
 */
export async function readReports(api: Api): Promise<readonly NodeHealth[]> {
  const reports = await listAll(api, { path: "/api/v1/nodes", item: ReportSchema, fresh: true, pageSize: PAGE_SIZE });
  return reports.filter((report) => report !== undefined);
}
