import { type Finding, type Reason, reason } from "../evidence/finding.ts";
import { STEPS, type Step, type StepArea, type StepKind, type StepOf, untilRemoval } from "../evidence/step.ts";
import { lstatSync, unreliableMountOn } from "../host/guarded-fs.ts";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { MAX_FILE_BYTES } from "../host/safe-fs.ts";
import { errorLabel } from "../host/source.ts";
import type { PlannedAction } from "../plan/plan.ts";
import type { JournalId } from "./journal/entry.ts";
import { isContention, type StormBrake } from "./proof/storm-brake.ts";
import { reasonToPause } from "./proof/turns.ts";
import { onUnreliableMount } from "./quarantine/file-identity.ts";
import { SANDBOX_STEPS } from "./steps/sandboxes.ts";
import {
  attempted,
  held,
  notAPlainFile,
  type Runs,
  refused,
  type StepResult,
  type StepTools,
} from "./steps/step-result.ts";

export type ActionOutcome = "healed" | "skipped" | "failed" | "refused";

/** The result of one planned action. */
export interface ActionResult {
  readonly action: PlannedAction;
  readonly outcome: ActionOutcome;
  readonly reason?: string;
  /** The stable code of the step that ended it, if it has one. */
  readonly code?: string;
  readonly journalId?: JournalId;
  /** The entries that `unghost undo` can revert. */
  readonly undo?: readonly JournalId[];
  /** Planned steps without a change: not needed any more, not reached, refused or failed. */
  readonly undone?: readonly Step[];
  /** The directory that the logs of removed containers were copied to. */
  readonly logsSavedTo?: string;
  readonly seconds: number;
}

export interface ActionSurroundings {
  readonly tools: StepTools;
  readonly brake: StormBrake;
}

/** Delays before a retry after a held lock. */
const BACK_OFF_MS = [500, 2000] as const;

/** Executes the steps of one action in order, and ends with the first that heals or does not succeed. */
export async function runAction(action: PlannedAction, surroundings: ActionSurroundings): Promise<ActionResult> {
  const startedAt = performance.now();
  const results: StepResult[] = [];
  const done = new Set<Step>();
  let after: FollowUpProblem | undefined;
  try {
    for (const [index, step] of action.steps.entries()) {
      const objection = index === 0 || callsPlugins(step) ? objectionTo(step, surroundings) : undefined;
      const result = objection === undefined ? await take(step, action, surroundings) : held(objection);
      results.push(result);
      if (result.kind === "done" || result.kind === "healed") done.add(step);
      if (result.kind !== "done" && result.kind !== "unneeded") break;
    }
    if (outcomeOf(results, action) === "healed") after = await runFollowUps(action, surroundings, done);
  } finally {
    for (const result of results) if (result.kind === "done") await result.cleanUp?.();
  }
  const made = results.filter((result) => result.kind === "done");
  const ended = results.find((result) => "reason" in result);
  const effect = made.findLast((result) => result.effect !== undefined)?.effect;
  const undo = made.flatMap(({ undoable, journalId }) => (undoable && journalId !== undefined ? [journalId] : []));
  const undone = [...action.steps, ...(action.followUps ?? [])].filter((step) => !done.has(step));
  return {
    action,
    outcome: outcomeOf(results, action),
    reason: ended?.reason ?? after?.reason ?? effect?.text,
    code: ended?.code ?? after?.code ?? effect?.code,
    journalId: results.flatMap((result) => ("journalId" in result ? (result.journalId ?? []) : []))[0],
    ...(undo.length === 0 ? {} : { undo }),
    ...(undone.length === 0 ? {} : { undone }),
    logsSavedTo: made.find((result) => result.logsSavedTo !== undefined)?.logsSavedTo,
    seconds: Math.round(performance.now() - startedAt) / 1000,
  };
}

/** A removed sandbox is healed. What its removal left, and a later step could not clean up, is a finding of its own. */
function outcomeOf(results: readonly StepResult[], { steps }: PlannedAction): ActionOutcome {
  const decisive = results.slice(0, untilRemoval(steps).length);
  const kind = decisive.at(-1)?.kind;
  if (kind === "held") return "skipped";
  return kind === "refused" || kind === "failed" ? kind : "healed";
}

interface FollowUpProblem {
  readonly reason: string | undefined;
  readonly code: string | undefined;
}

/** Runs the follow-ups, which help pods that the finding affected. The finding stays healed; returns what failed. */
async function runFollowUps(
  action: PlannedAction,
  { tools }: ActionSurroundings,
  done: Set<Step>,
): Promise<FollowUpProblem> {
  const objections: string[] = [];
  let code: string | undefined;
  for (const step of action.followUps ?? []) {
    if (tools.interruption.stop.aborted) break;
    const result = await runStep(step, action.finding, tools);
    if (result.kind === "done") done.add(step);
    if (result.kind !== "refused" && result.kind !== "failed") continue;
    code ??= result.code;
    objections.push("name" in step ? `${step.name}: ${result.reason}` : result.reason);
    if (step.kind === "await-socket") break;
  }
  return { reason: objections.length === 0 ? undefined : objections.join("; "), code };
}

/**
 * Why a step is not started. The steps after a removal are exempt: a stopping run still completes what it has started.
 */
function objectionTo(step: Step, { tools, brake }: ActionSurroundings): Reason | undefined {
  return reasonToPause(tools.interruption, callsPlugins(step) ? brake : undefined);
}

async function take(step: Step, { finding }: PlannedAction, { tools }: ActionSurroundings): Promise<StepResult> {
  if (!callsPlugins(step)) return await runStep(step, finding, tools);
  const unreadable = await unreadableEntry(step.sandboxId, tools);
  if (unreadable !== undefined) return refused(unreadable);
  for (const pause of BACK_OFF_MS) {
    const result = await runStep(step, finding, tools);
    const mayPass = result.kind === "failed" && isContention(result.text ?? "");
    if (!mayPass || tools.interruption.stop.aborted) return result;
    await tools.sleep(pause);
  }
  return await runStep(step, finding, tools);
}

/**
 * Why the runtime must not read this sandbox's result file. On DEL libcni opens it, whatever its type, and reads it
 * completely: a FIFO blocks the call forever, and gigabytes end up in the runtime's memory.
 */
async function unreadableEntry(sandboxId: string, tools: StepTools): Promise<Reason | undefined> {
  for (const path of await tools.facts.resultFiles(sandboxId)) {
    const stats = statsOnTime(path, tools);
    if (stats === undefined) continue;
    if (stats === "late") {
      return reason("mount-hangs", `the file system of ${path}, which the runtime reads first, does not answer`);
    }
    if (!stats.isFile()) return notAPlainFile(path);
    if (stats.size > MAX_FILE_BYTES) {
      return reason(
        "file-too-large",
        `${path} has ${stats.size} bytes, and the runtime would read them all. Inspect it, move it away, then heal again.`,
      );
    }
  }
  return undefined;
}

function statsOnTime(path: string, { hostRoot }: Pick<StepTools, "hostRoot">) {
  try {
    return lstatSync(resolveOnHost(hostRoot, path, "keep"), { throwIfNoEntry: false });
  } catch (error) {
    if (errorLabel(error) === "ETIMEDOUT") return "late";
    throw error;
  }
}

/** Why this step is not taken: a change that hangs halfway can neither be ended nor be recorded. */
function unreliablePath(step: object, { hostRoot }: Pick<StepTools, "hostRoot">): Reason | undefined {
  for (const value of Object.values(step)) {
    if (typeof value !== "string" || !value.startsWith("/")) continue;
    const mount = unreliableMountOn(hostPath(hostRoot, value));
    if (mount !== undefined) return reason("mount-may-hang", onUnreliableMount(value, mount));
  }
  return undefined;
}

/** Steps are loaded on demand: most heals only remove, and some load half of Node's library. */
const AREAS: { readonly [Area in StepArea]: () => Promise<Runs<Area>> } = {
  sandboxes: () => Promise.resolve(SANDBOX_STEPS),
  files: async () => (await import("./steps/files.ts")).FILE_STEPS,
  processes: async () => (await import("./steps/processes.ts")).PROCESS_STEPS,
  pods: async () => (await import("./steps/pods.ts")).POD_STEPS,
  networks: async () => (await import("./steps/networks.ts")).NETWORK_STEPS,
};

/** Executes one step. An error of the runtime is a result, not an exception. */
export function runStep(step: Step, finding: Finding, tools: StepTools): Promise<StepResult> {
  return attempted(() => dispatch(step, finding, tools));
}

/** The cleanup after a removal is mostly not needed, which is checked without loading the step. */
async function dispatch<Kind extends StepKind>(
  step: StepOf<Kind>,
  finding: Finding,
  tools: StepTools,
): Promise<StepResult> {
  const unreliable = unreliablePath(step, tools);
  if (unreliable !== undefined) return refused(unreliable);
  const { area, paths } = STEPS[step.kind];
  if (paths?.(step).every((path) => isGone(path, tools))) return { kind: "unneeded" };
  const runs: Partial<Runs<StepArea>> = await AREAS[area]();
  const run = runs[step.kind];
  if (run === undefined) throw new Error(`no ${area} step is called ${step.kind}`);
  return await run(step, finding, tools);
}

/** The steps for which the runtime calls network plugins. */
export function callsPlugins(step: Step): step is StepOf<"stop-sandbox" | "remove-sandbox"> {
  return step.kind === "stop-sandbox" || step.kind === "remove-sandbox";
}

/** Whether the path is absent. An unreadable path is left to the step. */
function isGone(path: string, { hostRoot }: { readonly hostRoot: string }): boolean {
  try {
    return lstatSync(resolveOnHost(hostRoot, path, "keep"), { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}
