import { StringDecoder } from "node:string_decoder";
import { setTimeout as sleep } from "node:timers/promises";
import * as v from "valibot";
import { byteCollector } from "../../host/bytes.ts";
import { type Api, getObject } from "../../kube/api.ts";
import { KubeError, orKubeError, unlessMissing } from "../../kube/errors.ts";
import { type Failure, kubeletDown, otherWay, refusedBecause } from "./failure.ts";
import { lifetimeOf, type OneShot, oneShotJob, oneShotPod } from "./job.ts";
import { deadlineExceeded, isOurs, oneShotState, PodSchema, type PodState } from "./pod-state.ts";
import { readTarget, type Target } from "./target.ts";

/** A client with a timeout for all its requests. */
export type OpenApi = (timeoutMs: number) => Api;

export interface Ended {
  readonly code: number;
  /** stdout and stderr, as kubelet's log has them. */
  readonly log: string;
}

export type Result = { readonly ok: true; readonly value: Ended } | { readonly ok: false; readonly failure: Failure };

/** Longer than kubelet takes on a busy node, and shorter than the control plane takes to call it NotReady. */
const UNSEEN_MS = 20_000;
/** With the pull of an image of 40 MB. */
const START_MS = 120_000;
const CLEAN_UP_MS = 15_000;
const [FIRST_POLL_MS, LONGEST_POLL_MS] = [200, 1000];
const MOST_LOG_BYTES = 64 * 1024 * 1024;

export interface RunOptions {
  /** Ctrl-C. */
  readonly signal: AbortSignal;
  readonly warn: (message: string) => void;
  /** Each line of its log as it comes; anybody with access to the node may have written it. */
  readonly line?: (text: string) => void;
}

/** Runs unghost once on a node in a privileged pod, which is removed in any case. */
export async function runOnce(open: OpenApi, shot: OneShot, options: RunOptions): Promise<Result> {
  const api = open(START_MS + shot.deadlineSeconds * 1000 + CLEAN_UP_MS);
  try {
    const target = await readTarget(api, shot.node);
    const cannot = knownObstacle(shot, target);
    if (cannot !== undefined) return { ok: false, failure: cannot };
    return await runOn(api, open, { ...options, shot, target });
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    return { ok: false, failure: { code: "api", message: error.message, next: "run the command again" } };
  } finally {
    api.close();
  }
}

function knownObstacle(shot: OneShot, target: Target): Failure | undefined {
  if (!target.isLinux)
    return { code: "not-linux", message: "it does not run Linux", next: "unghost is for Linux nodes" };
  const { status, since } = target.ready;
  return status === "Unknown" ? kubeletDown(shot, target, `NotReady${since ? ` since ${since}` : ""}`) : undefined;
}

interface Order extends RunOptions {
  readonly shot: OneShot;
  readonly target: Target;
}

const JobSchema = v.object({ metadata: v.object({ name: v.string(), uid: v.optional(v.string()) }) });

async function runOn(api: Api, open: OpenApi, order: Order): Promise<Result> {
  const { shot, target } = order;
  const base = `/api/v1/namespaces/${encodeURIComponent(shot.namespace)}/pods`;
  const jobs = `/apis/batch/v1/namespaces/${encodeURIComponent(shot.namespace)}/jobs`;
  const allowed = await orKubeError(api.create(`${base}?dryRun=All`, oneShotPod(shot)));
  if (allowed instanceof KubeError) return { ok: false, failure: refusedBecause(allowed, shot, target) };
  const created = await orKubeError(api.create(jobs, oneShotJob(shot)));
  if (created instanceof KubeError) return { ok: false, failure: refusedBecause(created, shot, target) };
  const parsed = v.safeParse(JobSchema, created);
  if (!parsed.success) throw new KubeError("unreadable", "the API server's answer is no Job");
  const { metadata } = parsed.output;
  const pods: Pods = { path: base, job: metadata, shot };
  let state: PodState = { kind: "unseen", detail: "" };
  try {
    state = await untilStarted(api, pods, order);
    if (state.kind === "failed") return { ok: false, failure: state.failure };
    return await readToItsEnd(api, pods, order);
  } finally {
    const removed = await orKubeError(remove(open, `${jobs}/${encodeURIComponent(metadata.name)}`, pods, state));
    if (removed instanceof KubeError) {
      const job = `the Job ${metadata.name} in ${shot.namespace}`;
      order.warn(
        `${job} could not be removed; the cluster removes it within ${lifetimeOf(shot)} s: ${removed.message}`,
      );
    }
  }
}

interface Pods {
  readonly path: string;
  readonly job: v.InferOutput<typeof JobSchema>["metadata"];
  readonly shot: OneShot;
}

const PodListSchema = v.object({ items: v.nullable(v.array(PodSchema)) });

/** Anybody who may create pods in the namespace may label one like that. */
async function podOf(api: Api, { path, job, shot }: Pods) {
  const query = `?${new URLSearchParams({ labelSelector: `job-name=${job.name}` }).toString()}`;
  const { items } = await getObject(api, path, PodListSchema, "list of pods", query);
  return items?.find((pod) => isOurs(pod, job.uid, shot));
}

/** `failed`, `running` or `ended`. */
async function untilStarted(api: Api, pods: Pods, { shot, target, signal }: Order): Promise<PodState> {
  const startedAt = performance.now();
  for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 1.5, LONGEST_POLL_MS)) {
    if (signal.aborted) return { kind: "failed", failure: INTERRUPTED };
    const pod = await podOf(api, pods);
    const state: PodState = pod === undefined ? { kind: "unseen", detail: "no pod" } : oneShotState(pod, shot, target);
    if (state.kind !== "unseen" && state.kind !== "starting") return state;
    const waitedMs = performance.now() - startedAt;
    if (state.kind === "unseen" && waitedMs > UNSEEN_MS) {
      if (pod !== undefined)
        return { kind: "failed", failure: kubeletDown(shot, target, "it does not take the one-shot pod") };
      return { kind: "failed", failure: noPod(shot, target) };
    }
    if (waitedMs > START_MS) return { kind: "failed", failure: notStarted(shot, target, state.detail) };
    await sleep(pollMs, undefined, { signal }).catch(ignoreAbort);
  }
}

const INTERRUPTED: Failure = { code: "interrupted", message: "interrupted", next: "its pod is removed" };

function noPod(shot: OneShot, target: Target): Failure {
  return {
    code: "not-started",
    message: "the cluster's job controller creates no pod: kube-controller-manager may be down",
    next: otherWay(shot, target),
  };
}

function notStarted(shot: OneShot, target: Target, detail: string): Failure {
  return {
    code: "not-started",
    message: `kubelet did not start the pod within ${START_MS / 1000} s (${detail || "without a reason"})`,
    next: otherWay(shot, target, { kubelet: false }),
  };
}

function ignoreAbort(error: unknown): void {
  if (!(error instanceof Error && error.name === "AbortError")) throw error;
}

async function readToItsEnd(api: Api, pods: Pods, order: Order): Promise<Result> {
  const { shot, target, signal } = order;
  const pod = await podOf(api, pods);
  if (pod === undefined) return { ok: false, failure: gone(shot, target) };
  const path = `${pods.path}/${encodeURIComponent(pod.metadata.name)}/log?container=unghost`;
  const log = await orKubeError(logOf(api, `${path}&follow=true`, { signal, line: order.line }));
  const state = await untilEnded(api, pods, order);
  if (signal.aborted) return { ok: false, failure: INTERRUPTED };
  if (state.kind === "failed") return { ok: false, failure: state.failure };
  if (state.kind !== "ended") return { ok: false, failure: deadlineExceeded(shot, target) };
  // A log that broke off, for example with a restart of kubelet, is complete now.
  const complete = log instanceof KubeError ? await logOf(api, path, { signal }) : log;
  return { ok: true, value: { code: state.code, log: complete } };
}

function gone(shot: OneShot, target: Target): Failure {
  return { code: "no-report", message: "its pod was deleted before it ended", next: otherWay(shot, target) };
}

async function logOf(api: Api, path: string, { signal, line }: Pick<RunOptions, "signal" | "line">): Promise<string> {
  const text = byteCollector();
  const decoder = new StringDecoder("utf8");
  let rest = "";
  for await (const chunk of api.stream(path, signal)) {
    text.add(chunk);
    if (text.size() > MOST_LOG_BYTES)
      throw new KubeError("unreadable", `the log of the one-shot pod is longer than ${MOST_LOG_BYTES} bytes`);
    if (line === undefined) continue;
    const lines = (rest + decoder.write(chunk)).split("\n");
    rest = lines.pop() ?? "";
    for (const one of lines) line(one);
  }
  return text.take().toString("utf8");
}

/** kubelet reports the end a moment after the log has ended. */
async function untilEnded(api: Api, pods: Pods, { shot, target, signal }: Order): Promise<PodState> {
  const endsAt = performance.now() + shot.deadlineSeconds * 1000;
  for (;;) {
    const pod = await podOf(api, pods);
    if (pod === undefined) return { kind: "failed", failure: gone(shot, target) };
    const state = oneShotState(pod, shot, target);
    if (state.kind === "ended" || state.kind === "failed" || signal.aborted || performance.now() > endsAt) return state;
    await sleep(FIRST_POLL_MS, undefined, { signal }).catch(ignoreAbort);
  }
}

/** With its own time: the run's may be over. */
async function remove(open: OpenApi, job: string, pods: Pods, state: PodState): Promise<void> {
  const api = open(CLEAN_UP_MS);
  try {
    const pod = state.kind === "failed" ? await podOf(api, pods) : undefined;
    await api.delete(job, { propagationPolicy: "Background" });
    // A kubelet that is down confirms no deletion, and no container of this pod has started.
    if (pod !== undefined) {
      await unlessMissing(
        api.delete(`${pods.path}/${encodeURIComponent(pod.metadata.name)}`, { gracePeriodSeconds: 0 }),
      );
    }
  } finally {
    api.close();
  }
}
