import type { Finding } from "../../evidence/finding.ts";
import type { Step } from "../../evidence/step.ts";
import { printable } from "../../host/printable.ts";
import type { Api } from "../../kube/api.ts";
import type { OpenCluster } from "../../kube/cluster-credentials.ts";
import { KubeError } from "../../kube/kube-error.ts";
import { readNodeReadiness } from "../../kube/node-readiness.ts";
import type { CriClient } from "../../runtime/cri.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { mapLimited } from "../../runtime/map-limited.ts";
import type { Interruption, Sleep, Waits } from "../execution/waits.ts";
import { type EndProcessTools, endProcess } from "./end-process.ts";
import { failed, held, type StepResult } from "./step-result.ts";

export interface FreeCniLockTools extends EndProcessTools, NodeReadyTools {
  readonly cri: EndProcessTools["cri"] & Pick<CriClient, "status">;
  readonly waits: EndProcessTools["waits"] & NodeReadyTools["waits"];
}

type FreeCniLock = Extract<Step, { kind: "free-cni-lock" }>;

/** Status is normally answered within milliseconds. */
const PROBE_MS = 2000;
/** Each reads the process table repeatedly until its plugin is gone. */
const ENDED_AT_ONCE = 4;
const POLL_MS = 200;

/**
 * The lock is free only when all of its holders are gone: they are ended concurrently, and none waits for the rollback
 * of its sandbox, which needs the lock itself.
 */
export async function freeCniLock(step: FreeCniLock, finding: Finding, tools: FreeCniLockTools): Promise<StepResult> {
  if (await answersStatus(tools)) return { kind: "unneeded" };
  const ended = await mapLimited(step.holders, ENDED_AT_ONCE, async (holder) => {
    if (tools.interruption.stop.aborted) return held({ code: "interrupted" });
    return await endProcess({ kind: "end-process", ...holder }, finding, tools, { awaitRollback: false });
  });
  const [objection] = ended.flatMap((result) => ("reason" in result ? [result.reason] : []));
  const [journalId] = ended.flatMap((result) => ("journalId" in result ? [result.journalId] : []));
  const deadline = performance.now() + tools.waits.queryMs;
  do {
    if (await answersStatus(tools)) return { kind: "done", journalId, effect: await nodeReadiness(step.node, tools) };
    await tools.sleep(POLL_MS);
  } while (performance.now() < deadline);
  return { ...failed({ code: "status-unanswered", why: objection }), journalId };
}

async function answersStatus({ cri }: FreeCniLockTools): Promise<boolean> {
  try {
    await cri.status({ timeoutMs: PROBE_MS, signal: AbortSignal.timeout(PROBE_MS) });
    return true;
  } catch (error) {
    if (error instanceof RuntimeError) return false;
    throw error;
  }
}

/** The state of the node after Status answers again. */
export interface NodeReady {
  readonly code: "node-ready" | "node-not-ready" | "node-not-asked";
  readonly words: string;
}

interface NodeReadyTools {
  /** Missing if the cluster is not used. */
  readonly cluster?: OpenCluster;
  readonly waits: Pick<Waits, "queryMs" | "kubeletMs">;
  readonly sleep: Sleep;
  readonly interruption: Pick<Interruption, "stop">;
}

const READY_POLL_MS = 1000;
const ANSWERS = "the runtime answers Status again";

/**
 * Kubelet calls Status every five seconds and reports a change with its next heartbeat. `node` is its name in the
 * cluster.
 */
export async function nodeReadiness(node: string | undefined, tools: NodeReadyTools): Promise<NodeReady> {
  if (node === undefined) return notAsked("no API server was asked");
  const { kubeletMs, queryMs } = tools.waits;
  try {
    const api = await tools.cluster?.(kubeletMs + queryMs);
    if (api === undefined) return notAsked("there is no Kubernetes API to ask");
    try {
      return await untilReady(api, node, tools);
    } finally {
      api.close();
    }
  } catch (error) {
    if (error instanceof KubeError) return notAsked(error.message);
    throw error;
  }
}

function notAsked(why: string): NodeReady {
  return { code: "node-not-asked", words: `${ANSWERS}; whether the node is Ready is not known: ${why}` };
}

async function untilReady(api: Api, node: string, { waits, sleep, interruption }: NodeReadyTools): Promise<NodeReady> {
  const startedAt = performance.now();
  for (;;) {
    const { ready, message } = await readNodeReadiness(api, node);
    if (ready) return { code: "node-ready", words: `${ANSWERS}, and the node ${node} is Ready` };
    const waitedMs = performance.now() - startedAt;
    if (waitedMs >= waits.kubeletMs || interruption.stop.aborted) {
      const seconds = Math.round(waitedMs / 1000);
      return {
        code: "node-not-ready",
        words: `${ANSWERS}, and the node ${node} is not Ready after ${seconds}s: ${printable(message)}; check kubelet's log`,
      };
    }
    await sleep(READY_POLL_MS);
  }
}
