import * as v from "valibot";
import { type Api, getObject } from "../../kube/api.ts";
import { KubeError, orKubeError, unlessMissing } from "../../kube/errors.ts";
import {
  applyGhostReport,
  createGhostReport,
  type GhostReport,
  type GhostReportStatus,
  readGhostReport,
} from "../../kube/ghost-report.ts";
import { apiTime } from "../../report/node-summary.ts";
import type { ClusterUse } from "../limits/timing.ts";
import { nodePath, type Publisher } from "./condition-publisher.ts";

interface Written {
  readonly status: GhostReportStatus;
  /** By the clock. */
  readonly atMs: number;
  readonly refreshAfterMs: number;
}

const GAP_MS = 30_000;
const REFRESH_MS = 60 * 60_000;
/** Agents that were started together write at different times after an hour. */
const REFRESH_JITTER_MS = 12 * 60_000;
/** A cluster without the CustomResourceDefinition may get it later. */
const NOT_INSTALLED_MS = 10 * 60_000;
const MOST_SAVED = 2;

const OwnerSchema = v.object({ metadata: v.object({ uid: v.string() }) });

/**
 * Publishes the GhostReport of this node, and guarantees:
 * 1. A change after a quiet time is written at once. Later ones are collected for 30 s, except for one that matters,
 *    such as a new ghost: it is written at once too, and the next one after a minute.
 * 2. However often something changes, there are three writes in a minute at most, and two on average.
 * 3. Without changes there is one write in about an hour. It is no heartbeat: the readiness of the agent's pod is.
 * 4. A restart changes nothing: the existing report is read before the first write.
 */
export function reportPublisher(
  { nodeName, timing: { clock, now, random }, warn }: ClusterUse,
  wanted: () => GhostReportStatus | undefined,
): Publisher {
  let written: Written | "nothing" | "unread" = "unread";
  /** One write is saved up in each gap since then, and not more than the most. */
  let spentAtMs = Number.NEGATIVE_INFINITY;
  let notBeforeMs = 0;
  let isReportedMissing = false;

  function dueMs(): number {
    const next = wanted();
    if (next === undefined) return Number.POSITIVE_INFINITY;
    if (written === "unread" || written === "nothing") return Math.max(notBeforeMs, spentAtMs + GAP_MS);
    const { status, atMs, refreshAfterMs } = written;
    if (isSame(status, next)) return atMs + refreshAfterMs;
    return Math.max(notBeforeMs, spentAtMs + GAP_MS * (isUrgent(status, next) ? 1 : MOST_SAVED));
  }

  /** Its own clock wrote that time, so it may be compared; after a clock step one extra write does no harm. */
  function adopted({ status }: GhostReport): Written | "nothing" {
    if (status === undefined) return "nothing";
    const ageMs = now().getTime() - Date.parse(status.observedAt);
    const isRecent = ageMs >= 0 && ageMs < REFRESH_MS;
    return { status, atMs: clock() - (isRecent ? ageMs : REFRESH_MS), refreshAfterMs: REFRESH_MS };
  }

  async function write(api: Api): Promise<void> {
    const name = nodeName();
    if (written === "unread") {
      const found = await unlessMissing(readGhostReport(api, name));
      written = found === undefined ? "nothing" : adopted(found);
    }
    const next = wanted();
    if (next === undefined || clock() < dueMs()) return;
    const before = written === "nothing" ? undefined : written.status;
    const status = withTimes(next, before, apiTime(now()));
    const refused = await orKubeError(applyGhostReport(api, name, status));
    if (refused instanceof KubeError) {
      if (refused.kind !== "not-found") throw refused;
      if (!(await create(api, name))) return;
      await applyGhostReport(api, name, status);
    }
    const allSavedAtMs = clock() - MOST_SAVED * GAP_MS;
    // One that did not wait counts twice: the next one waits for a minute.
    spentAtMs = spentAtMs > allSavedAtMs ? spentAtMs + MOST_SAVED * GAP_MS : allSavedAtMs + GAP_MS;
    written = { status, atMs: clock(), refreshAfterMs: REFRESH_MS - random() * REFRESH_JITTER_MS };
  }

  /** Whether the cluster has the custom resource. */
  async function create(api: Api, name: string): Promise<boolean> {
    const { metadata } = await getObject(api, nodePath(name), OwnerSchema, "node");
    const refused = await orKubeError(createGhostReport(api, { name, uid: metadata.uid }));
    if (!(refused instanceof KubeError)) return true;
    if (refused.kind !== "not-found") throw refused;
    notBeforeMs = clock() + NOT_INSTALLED_MS * (1 + random());
    if (!isReportedMissing) warn("GhostReport is not installed in the cluster; nothing is written", refused.message);
    isReportedMissing = true;
    return false;
  }

  return { dueMs, write };
}

/** Each change of these is not worth a write of its own: they change with every pod, or with every scan. */
const PASSING: ReadonlySet<string> = new Set([
  "observedAt",
  "sandboxes",
  "since",
  "lastSuccessAt",
  "lastFailureAt",
  "lastTransitionTime",
]);

function lasting(status: GhostReportStatus): string {
  return JSON.stringify(status, (key, value: unknown) => (PASSING.has(key) ? undefined : sorted(value)));
}

/** The API server returns fields in its own order. */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

function isSame(one: GhostReportStatus, other: GhostReportStatus): boolean {
  return lasting(one) === lasting(other);
}

/** Somebody waits for this: a new ghost, or the end of them. */
function isUrgent(before: GhostReportStatus, next: GhostReportStatus): boolean {
  return (
    before.verdict !== next.verdict ||
    before.totals.findings < next.totals.findings ||
    before.podCreation?.able !== next.podCreation?.able
  );
}

function withTimes(status: GhostReportStatus, before: GhostReportStatus | undefined, now: string): GhostReportStatus {
  const conditions = status.conditions?.map((condition) => {
    const standing = before?.conditions?.find(({ type }) => type === condition.type);
    const isUnchanged = standing?.status === condition.status;
    return { ...condition, lastTransitionTime: isUnchanged ? standing.lastTransitionTime : now };
  });
  return { ...status, conditions };
}
