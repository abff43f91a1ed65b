import * as v from "valibot";
import type { Api } from "../../kube/api.ts";
import { KubeError } from "../../kube/errors.ts";
import { apiTime } from "../../report/node-summary.ts";
import { CONDITION_TYPES, type ConditionType, NodeSchema, type StandingCondition } from "../limits/breaker.ts";
import type { ClusterUse } from "../limits/timing.ts";
import { type Condition } from "./condition.ts";

/** Something that is written to the API. */
export interface Publisher {
  /** When the next write is due, by the clock; Infinity if there is none. */
  dueMs(): number;
  /** Throws a KubeError. */
  write(api: Api): Promise<void>;
}

/** A condition with its type. */
export interface NamedCondition extends Condition {
  readonly type: ConditionType;
}

type Standing = ReadonlyMap<ConditionType, StandingCondition>;

interface Published {
  readonly standing: Standing;
  /** By the clock. */
  readonly atMs: number;
  readonly heartbeatAfterMs: number;
}

const HEARTBEAT_MS = 5 * 60_000;
const HEARTBEAT_JITTER_MS = 30_000;
const SHORTEST_GAP_MS = 15_000;
const SETTLE_MS = 2000;

/**
 * Publishes the node's conditions, all in one write, and guarantees:
 * 1. A change is written soon: a new status at once, a new message after a short delay that collects more changes.
 * 2. However often they change, two writes are never closer together than the minimum interval.
 * 3. Without changes there is one write in five minutes, as a heartbeat.
 * 4. A failed write is retried with a growing back-off (by the exporter).
 * 5. A restart changes nothing: the existing conditions are read before the first write.
 */
export function conditionPublisher(
  { nodeName, timing: { clock, now, random } }: ClusterUse,
  wanted: () => readonly NamedCondition[],
): Publisher {
  let published: Published | "nothing" | "unread" = "unread";
  let differsSinceMs: number | undefined;

  function dueMs(): number {
    const next = wanted();
    if (next.length === 0) return Number.POSITIVE_INFINITY;
    if (published === "unread" || published === "nothing") return 0;
    const { standing, atMs, heartbeatAfterMs } = published;
    if (next.every((one) => isSame(standing.get(one.type), one))) {
      differsSinceMs = undefined;
      return atMs + heartbeatAfterMs;
    }
    differsSinceMs ??= clock();
    const hasTurned = next.some(({ type, status }) => standing.get(type)?.status !== status);
    return Math.max(hasTurned ? 0 : differsSinceMs + SETTLE_MS, atMs + SHORTEST_GAP_MS);
  }

  /** Our own clock wrote that heartbeat, so it may be compared; after a clock step one extra write does no harm. */
  async function read(api: Api): Promise<Published | "nothing"> {
    const { conditions: standing } = await readNode(api, nodeName());
    if (standing.size === 0) return "nothing";
    const heartbeats = [...standing.values()].map(({ heartbeatAt }) => heartbeatAt.getTime());
    const ageMs = now().getTime() - Math.min(...heartbeats);
    const isRecent = ageMs >= 0 && ageMs < HEARTBEAT_MS;
    return { standing, atMs: clock() - (isRecent ? ageMs : HEARTBEAT_MS), heartbeatAfterMs: HEARTBEAT_MS };
  }

  async function write(api: Api): Promise<void> {
    if (published === "unread") published = await read(api);
    const next = wanted();
    if (next.length === 0 || clock() < dueMs()) return;
    const before: Standing = published === "nothing" ? new Map() : published.standing;
    const heartbeatAt = now();
    const standing = next.map((one): StandingCondition => {
      const earlier = before.get(one.type);
      const turnedAt = earlier?.status === one.status ? earlier.turnedAt : heartbeatAt;
      const { type, status, reason } = one;
      return { type, status, reason, message: messageOf(one), turnedAt, heartbeatAt };
    });
    await patchConditions(api, nodeName(), standing.map(asWritten));
    differsSinceMs = undefined;
    published = {
      standing: new Map(standing.map((one) => [one.type, one])),
      atMs: clock(),
      heartbeatAfterMs: HEARTBEAT_MS + random() * HEARTBEAT_JITTER_MS,
    };
  }

  return { dueMs, write };
}

/** `passing` alone is not worth a write. */
function isSame(one: StandingCondition | undefined, other: NamedCondition): boolean {
  if (one === undefined || one.status !== other.status || one.reason !== other.reason) return false;
  if (other.passing === undefined) return one.message === other.message;
  return one.message === other.message || one.message.startsWith(`${other.message}${PASSING_MARK}`);
}

const PASSING_MARK = "; last ";

function messageOf({ message, passing }: NamedCondition): string {
  return passing === undefined ? message : `${message}${PASSING_MARK}${passing}`;
}

function asWritten({ turnedAt, heartbeatAt, ...condition }: StandingCondition) {
  return { ...condition, lastHeartbeatTime: apiTime(heartbeatAt), lastTransitionTime: apiTime(turnedAt) };
}

export async function readNode(api: Api, node: string) {
  const path = nodePath(node);
  const result = v.safeParse(NodeSchema, await api.get(path));
  if (!result.success) throw new KubeError("unreadable", `the API server's answer to ${path} is no node`);
  return result.output;
}

/** Conditions are merged by type: kubelet's own are not touched. */
async function patchConditions(api: Api, node: string, conditions: readonly object[]): Promise<void> {
  await api.patch(`${nodePath(node)}/status`, { status: { conditions } }, "strategic");
}

export async function deleteConditions(api: Api, node: string): Promise<void> {
  const gone = CONDITION_TYPES.map((type) => ({ type, $patch: "delete" }));
  await patchConditions(api, node, gone);
}

export function nodePath(node: string): string {
  return `/api/v1/nodes/${encodeURIComponent(node)}`;
}
