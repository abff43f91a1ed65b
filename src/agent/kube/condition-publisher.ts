import * as v from "valibot";
import type { Api } from "../../kube/api.ts";
import { KubeError } from "../../kube/errors.ts";
import { apiTime } from "../../report/node-summary.ts";
import { CONDITION_TYPE, NodeSchema, type StandingCondition } from "../limits/breaker.ts";
import type { ClusterUse } from "../limits/timing.ts";
import { type Condition } from "./condition.ts";

/** Something that is written to the API. */
export interface Publisher {
  /** When the next write is due, by the clock; Infinity if there is none. */
  dueMs(): number;
  /** Throws a KubeError. */
  write(api: Api): Promise<void>;
}

interface Published {
  readonly standing: StandingCondition;
  /** By the clock. */
  readonly atMs: number;
  readonly heartbeatAfterMs: number;
}

const HEARTBEAT_MS = 5 * 60_000;
const HEARTBEAT_JITTER_MS = 30_000;
const SHORTEST_GAP_MS = 15_000;
const SETTLE_MS = 2000;

/**
 * Publishes a condition, and guarantees:
 * 1. A change is written soon: a new status at once, a new message after a short delay that collects more changes.
 * 2. However often it changes, two writes are never closer together than the minimum interval.
 * 3. Without changes there is one write in five minutes, as a heartbeat.
 * 4. A failed write is retried with a growing back-off (by the exporter).
 * 5. A restart changes nothing: the existing condition is read before the first write.
 */
export function conditionPublisher(
  { nodeName, timing: { clock, now, random } }: ClusterUse,
  wanted: () => Condition | undefined,
): Publisher {
  let published: Published | "nothing" | "unread" = "unread";
  let differsSinceMs: number | undefined;

  function dueMs(): number {
    const next = wanted();
    if (next === undefined) return Number.POSITIVE_INFINITY;
    if (published === "unread" || published === "nothing") return 0;
    const { standing, atMs, heartbeatAfterMs } = published;
    if (isSame(standing, next)) {
      differsSinceMs = undefined;
      return atMs + heartbeatAfterMs;
    }
    differsSinceMs ??= clock();
    const settledMs = standing.status === next.status ? differsSinceMs + SETTLE_MS : 0;
    return Math.max(settledMs, atMs + SHORTEST_GAP_MS);
  }

  /** Our own clock wrote that heartbeat, so it may be compared; after a clock step one extra write does no harm. */
  async function read(api: Api): Promise<Published | "nothing"> {
    const { condition: standing } = await readNode(api, nodeName());
    if (standing === undefined) return "nothing";
    const ageMs = now().getTime() - standing.heartbeatAt.getTime();
    const isRecent = ageMs >= 0 && ageMs < HEARTBEAT_MS;
    return { standing, atMs: clock() - (isRecent ? ageMs : HEARTBEAT_MS), heartbeatAfterMs: HEARTBEAT_MS };
  }

  async function write(api: Api): Promise<void> {
    if (published === "unread") published = await read(api);
    const next = wanted();
    if (next === undefined || clock() < dueMs()) return;
    const before = published === "nothing" ? undefined : published.standing;
    const turnedAt = before?.status === next.status ? before.turnedAt : now();
    const heartbeatAt = now();
    const times = { lastHeartbeatTime: apiTime(heartbeatAt), lastTransitionTime: apiTime(turnedAt) };
    await patchCondition(api, nodeName(), { ...next, ...times });
    differsSinceMs = undefined;
    published = {
      standing: { ...next, heartbeatAt, turnedAt },
      atMs: clock(),
      heartbeatAfterMs: HEARTBEAT_MS + random() * HEARTBEAT_JITTER_MS,
    };
  }

  return { dueMs, write };
}

function isSame(one: StandingCondition, other: Condition): boolean {
  return one.status === other.status && one.reason === other.reason && one.message === other.message;
}

export async function readNode(api: Api, node: string) {
  const path = nodePath(node);
  const result = v.safeParse(NodeSchema, await api.get(path));
  if (!result.success) throw new KubeError("unreadable", `the API server's answer to ${path} is no node`);
  return result.output;
}

/** Conditions are merged by type: kubelet's own are not touched. */
async function patchCondition(api: Api, node: string, change: object): Promise<void> {
  const condition = { type: CONDITION_TYPE, ...change };
  await api.patch(`${nodePath(node)}/status`, { status: { conditions: [condition] } }, "strategic");
}

export async function deleteCondition(api: Api, node: string): Promise<void> {
  await patchCondition(api, node, { $patch: "delete" });
}

export function nodePath(node: string): string {
  return `/api/v1/nodes/${encodeURIComponent(node)}`;
}
