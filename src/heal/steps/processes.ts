import { type Finding, type Reason, reason } from "../../evidence/finding.ts";
import type { StepOf } from "../../evidence/step.ts";
import { mapLimited } from "../../host/concurrency.ts";
import { pollUntil } from "../../host/poll.ts";
import { parseStat, procText } from "../../host/proc.ts";
import { errorCode, valueOr } from "../../host/source.ts";
import { printable } from "../../host/text.ts";
import type { Api } from "../../kube/api.ts";
import { withApi } from "../../kube/cluster-credentials.ts";
import { KubeError } from "../../kube/errors.ts";
import { readNodeReadiness } from "../../kube/pods.ts";
import { comparePidNamespace } from "../../node/machine.ts";
import type { ProcessFacts, ProcessRef, ShimProcess } from "../../node/types/runtime.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { PodSandboxState } from "../../runtime/gen/runtime/v1/cri.ts";
import { INTERRUPTED } from "../proof/fresh-facts.ts";
import {
  foreignPidNamespace,
  held,
  journaled,
  type Runs,
  refused,
  type StepResult,
  type StepTools,
  stepFailed,
} from "./step-result.ts";

type EndProcess = StepOf<"end-process">;

const POLL_MS = 50;
/** Each check reads all records of the runtime. */
const ROLLBACK_POLL_MS = 200;

/** Ends a hung plugin with all processes that have the same sandbox in their environment, or a leaked shim. */
export async function endProcess(
  step: EndProcess,
  finding: Finding,
  tools: StepTools,
  { awaitRollback = true }: { readonly awaitRollback?: boolean } = {},
): Promise<StepResult> {
  const listed = await tools.cri.listPodSandbox({ id: step.sandboxId }, { timeoutMs: tools.waits.queryMs });
  const isReady = listed.some(({ id, state }) => id === step.sandboxId && state === PodSandboxState.SANDBOX_READY);
  if (isReady) return refused(reason("sandbox-ready", "the sandbox became Ready"));
  const foreign = foreignPidNamespace(tools.hostRoot);
  if (foreign !== undefined) return refused(foreign);
  const facts = await processesNow(tools);
  if (facts === undefined) return refused(reason("processes-unread", "the process table cannot be read"));
  if (!belongingTo(step, facts).some((process) => isSame(process, step))) return { kind: "unneeded" };
  const shim = shimOf(step, facts);
  if (shim !== undefined && shim.childPids.length > 1) {
    return refused(
      reason("shim-has-children", `the shim has ${shim.childPids.length} children: more than pause lives there`),
    );
  }
  const { pid, startedSecondsAfterBoot } = step;
  return await journaled(tools, finding, { kind: "end-process", pid, startedSecondsAfterBoot }, async () => {
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      await signalAll(step, signal, tools);
      if (!(await hasEnded(step, tools))) continue;
      if (shim !== undefined) await untilCleanedUp(step.sandboxId, tools);
      else if (awaitRollback) await rolledBack(step.sandboxId, tools);
      return { kind: "done" };
    }
    return stepFailed(
      reason("process-unkillable", `pid ${pid} does not end: it is in the kernel (state D), and only a reboot helps`),
    );
  });
}

/** Resolved again for every signal, because the pid may have been reused. */
async function signalAll(step: EndProcess, signal: "SIGTERM" | "SIGKILL", tools: StepTools): Promise<void> {
  for (const found of (await treeOf(step, tools)) ?? []) signalProcess(found, signal, tools.hostRoot);
}

/**
 * With its plugin gone the runtime rolls the creation back and releases the name, usually within a second. If that
 * fails, too, the sandbox gets listed, and is a separate finding.
 */
async function rolledBack(sandboxId: string, tools: StepTools): Promise<void> {
  const isListedOrGone = async (): Promise<true | undefined> => {
    tools.facts.renew();
    if ((await tools.facts.sandbox(sandboxId)) !== undefined) return true;
    const known = await tools.facts.containerd();
    const records = [...(known?.records ?? []), ...(known?.sandboxes ?? [])];
    return !records.some(({ id }) => id === sandboxId) || undefined;
  };
  const { waits, sleep } = tools;
  await pollUntil(isListedOrGone, { everyMs: ROLLBACK_POLL_MS, timeoutMs: waits.rollbackMs, sleep });
}

/** containerd notices that a shim is gone and starts another one for a moment, which removes pause. */
async function untilCleanedUp(sandboxId: string, tools: StepTools): Promise<void> {
  const isCleanedUp = async (): Promise<true | undefined> => {
    const facts = await processesNow(tools);
    const isLeft =
      facts?.shims.some(({ id }) => id === sandboxId) === true || facts?.byContainer.has(sandboxId) === true;
    return !isLeft || undefined;
  };
  await pollUntil(isCleanedUp, { everyMs: POLL_MS, timeoutMs: tools.waits.rollbackMs, sleep: tools.sleep });
}

async function hasEnded(step: EndProcess, tools: StepTools): Promise<boolean> {
  const noneLeft = async (): Promise<true | undefined> => (await treeOf(step, tools))?.length === 0 || undefined;
  const { waits, sleep } = tools;
  return (await pollUntil(noneLeft, { everyMs: POLL_MS, timeoutMs: waits.termMs, sleep })) === true;
}

async function treeOf(step: EndProcess, tools: StepTools): Promise<readonly ProcessRef[] | undefined> {
  const facts = await processesNow(tools);
  return facts === undefined ? undefined : belongingTo(step, facts);
}

async function processesNow(tools: StepTools): Promise<ProcessFacts | undefined> {
  return valueOr(await tools.facts.processesNow(), undefined);
}

function belongingTo(step: EndProcess, facts: ProcessFacts): readonly ProcessRef[] {
  const { sandboxId, startedSecondsAfterBoot } = step;
  const shim = shimOf(step, facts);
  if (shim !== undefined) return [shim];
  const plugins = facts.plugins.filter((plugin) => plugin.sandboxId === sandboxId);
  // A retry of kubelet may have started a younger plugin for the same sandbox: that one is not hung.
  return plugins.filter((plugin) => plugin.startedSecondsAfterBoot <= startedSecondsAfterBoot + TREE_SECONDS);
}

function shimOf(step: EndProcess, { shims }: ProcessFacts): ShimProcess | undefined {
  return shims.find((shim) => isSame(shim, step) && shim.id === step.sandboxId);
}

/** A plugin starts its child processes within this time. */
const TREE_SECONDS = 5;

/** Start times come from the same kernel counter, so they are exactly equal. */
function isSame(
  one: Pick<ProcessRef, "pid" | "startedSecondsAfterBoot">,
  other: Pick<EndProcess, "pid" | "startedSecondsAfterBoot">,
): boolean {
  return one.pid === other.pid && one.startedSecondsAfterBoot === other.startedSecondsAfterBoot;
}

/**
 * Sends a signal to a process that was read below `hostRoot`, and to no other: its namespace and start time are
 * compared right before. Neither engine supports pidfds; between the comparison and the signal are some microseconds,
 * in which the kernel would have to use every other pid once.
 */
function signalProcess(
  { pid, startedSecondsAfterBoot }: Pick<ProcessRef, "pid" | "startedSecondsAfterBoot">,
  signal: "SIGTERM" | "SIGKILL",
  hostRoot: string,
): void {
  if (pid <= 1 || comparePidNamespace(hostRoot).kind !== "own") return;
  // In our own /proc: its pids are the ones for kill(2).
  const stat = parseStat(procText(`/proc/${pid}/stat`));
  try {
    if (stat?.startedSecondsAfterBoot === startedSecondsAfterBoot) process.kill(pid, signal);
  } catch (error) {
    // It exited in between, which is the goal.
    if (errorCode(error) !== "ESRCH") throw error;
  }
}

type FreeCniLock = StepOf<"free-cni-lock">;

/** Status is normally answered within milliseconds. */
const PROBE_MS = 2000;
/** Each reads the process table repeatedly until its plugin is gone. */
const ENDED_AT_ONCE = 4;
const STATUS_POLL_MS = 200;

/**
 * The lock is free only when all of its holders are gone: they are ended concurrently, and none waits for the rollback
 * of its sandbox, which needs the lock itself.
 */
export async function freeCniLock(step: FreeCniLock, finding: Finding, tools: StepTools): Promise<StepResult> {
  if (await answersStatus(tools)) return { kind: "unneeded" };
  const ended = await mapLimited(step.holders, ENDED_AT_ONCE, async (holder) => {
    if (tools.interruption.stop.aborted) return held(INTERRUPTED);
    return await endProcess({ kind: "end-process", ...holder }, finding, tools, { awaitRollback: false });
  });
  const [objection] = ended.flatMap((result) => ("reason" in result ? [result.reason] : []));
  const [journalId] = ended.flatMap((result) => ("journalId" in result ? [result.journalId] : []));
  const deadline = performance.now() + tools.waits.queryMs;
  do {
    if (await answersStatus(tools)) return { kind: "done", journalId, effect: await nodeReadiness(step.node, tools) };
    await tools.sleep(STATUS_POLL_MS);
  } while (performance.now() < deadline);
  const unanswered = reason(
    "status-unanswered",
    `the runtime still does not answer Status: ${objection ?? "no plugin process is left that could hold it"}; restart the runtime`,
  );
  return { ...stepFailed(unanswered), journalId };
}

async function answersStatus({ cri }: StepTools): Promise<boolean> {
  try {
    await cri.status({ timeoutMs: PROBE_MS, signal: AbortSignal.timeout(PROBE_MS) });
    return true;
  } catch (error) {
    if (error instanceof RuntimeError) return false;
    throw error;
  }
}

type ReadinessTools = Pick<StepTools, "cluster" | "waits" | "sleep" | "interruption">;

const READY_POLL_MS = 1000;
const ANSWERS = "the runtime answers Status again";

/**
 * The state of the node after Status answers again. Kubelet calls Status every five seconds and reports a change with its next heartbeat. `node` is its name in the
 * cluster.
 */
export async function nodeReadiness(node: string | undefined, tools: ReadinessTools): Promise<Reason> {
  if (node === undefined) return notAsked("no API server was asked");
  const { kubeletMs, queryMs } = tools.waits;
  try {
    return await withApi(tools.cluster, kubeletMs + queryMs, (api) => untilReady(api, node, tools));
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    return notAsked(error.kind === "no-credentials" ? "there is no Kubernetes API to ask" : error.message);
  }
}

function notAsked(why: string): Reason {
  return reason("node-not-asked", `${ANSWERS}; whether the node is Ready is not known: ${why}`);
}

async function untilReady(api: Api, node: string, { waits, sleep, interruption }: ReadinessTools): Promise<Reason> {
  const startedAt = performance.now();
  for (;;) {
    const { ready, message } = await readNodeReadiness(api, node);
    if (ready) return reason("node-ready", `${ANSWERS}, and the node ${node} is Ready`);
    const waitedMs = performance.now() - startedAt;
    if (waitedMs >= waits.kubeletMs || interruption.stop.aborted) {
      const seconds = Math.round(waitedMs / 1000);
      return reason(
        "node-not-ready",
        `${ANSWERS}, and the node ${node} is not Ready after ${seconds}s: ${printable(message)}; check kubelet's log`,
      );
    }
    await sleep(READY_POLL_MS);
  }
}

export const PROCESS_STEPS = {
  "end-process": (step, finding, tools) => endProcess(step, finding, tools),
  "free-cni-lock": freeCniLock,
} satisfies Runs<"processes">;
