import type { Finding } from "../../evidence/finding.ts";
import type { Step } from "../../evidence/step.ts";
import type { CriClient } from "../../runtime/cri.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { mapLimited } from "../../runtime/map-limited.ts";
import { type NodeReadyTools, nodeReadiness } from "../execution/node-ready.ts";
import { type EndProcessTools, endProcess } from "./end-process.ts";
import { failed, held, type StepResult } from "./step-result.ts";

export interface FreeCniLockTools extends EndProcessTools, NodeReadyTools {
  readonly cri: EndProcessTools["cri"] & Pick<CriClient, "status">;
  readonly waits: EndProcessTools["waits"] & NodeReadyTools["waits"];
}

type FreeCniLock = Extract<Step, { kind: "free-cni-lock" }>;

/** A Status that can be answered is answered within milliseconds. */
const PROBE_MS = 2000;
/** Each reads the process table over and over until its plugin is gone. */
const ENDED_AT_ONCE = 4;
const POLL_MS = 200;

/**
 * The lock is free only when all of its holders are gone: they are ended side by side, and none waits for the rollback of
 * its sandbox, which needs the lock itself.
 */
export async function freeCniLock(step: FreeCniLock, finding: Finding, tools: FreeCniLockTools): Promise<StepResult> {
  if (await answersStatus(tools)) return { kind: "unneeded" };
  const ended = await mapLimited(step.holders, ENDED_AT_ONCE, async (holder) => {
    if (tools.interruption.stop.aborted) return held({ code: "interrupted" });
    return await endProcess({ kind: "end-process", ...holder }, finding, tools, { awaitRollback: false });
  });
  const [objection] = ended.flatMap((result) => ("reason" in result ? [result.reason] : []));
  const [journalId] = ended.flatMap((result) => ("journalId" in result ? [result.journalId] : []));
  const deadline = performance.now() + tools.waits.lookMs;
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
