import { STEPS, type Step, type StepKind, type StepOf, untilRemoval } from "../evidence/step.ts";
import type { PlannedAction } from "../plan/plan.ts";

type Steps = Pick<PlannedAction, "steps" | "followUps">;

/** One step of a plan in words. */
export interface PlannedStep {
  readonly step: string;
  /** What exactly it changes. */
  readonly target?: string;
  /** `unghost undo` puts it back. */
  readonly undo: boolean;
  /** Done only for what the runtime's removal leaves behind. */
  readonly ifLeft: boolean;
}

/** What would be done, for the plan: every step that may change something, in order. */
export function plannedSteps({ steps, followUps = [] }: Steps): readonly PlannedStep[] {
  const decisive = untilRemoval(steps);
  const sweeps = steps.slice(decisive.length);
  const isRemoved = decisive.some(({ kind }) => kind === "remove-sandbox");
  const checks = isRemoved && sweeps.length === 0 ? [inWords("check that its network is released")] : [];
  return [
    ...decisive.map((step) => described(step, false)),
    ...sweeps.map((step) => described(step, true)),
    ...checks,
    ...followUpsInWords(followUps).map(inWords),
  ];
}

function described(step: Step, ifLeft: boolean): PlannedStep {
  const { reversible = false } = STEPS[step.kind];
  return { step: planned(step), target: targetOf(step), undo: reversible, ifLeft };
}

function inWords(step: string): PlannedStep {
  return { step, undo: false, ifLeft: false };
}

/** Each step with what it changes. */
export function stepWords(steps: readonly PlannedStep[]): string[] {
  const words = steps.map(({ step, target, undo, ifLeft }) => {
    const on = target === undefined ? "" : `: ${target}`;
    return `${ifLeft ? "if left, " : ""}${step}${on}${undo ? UNDO : ""}`;
  });
  return [...new Set(words)];
}

/** For many findings at once: without what each step changes, and the clean-up after a removal in short. */
export function briefSteps(action: Steps): readonly string[] {
  const sweeps = action.steps.slice(untilRemoval(action.steps).length);
  const left = [...new Set(sweeps.flatMap(({ kind }) => STEPS[kind].words.short?.[0] ?? []))].join(", ");
  const words = plannedSteps(action).map(({ step, undo, ifLeft }) =>
    ifLeft ? `clean up what is left (${left})` : `${step}${undo ? UNDO : ""}`,
  );
  return [...new Set(words)];
}

const UNDO = " (undo puts it back)";

function followUpsInWords(steps: readonly Step[]): readonly string[] {
  const restarts = steps.filter((step) => step.kind === "kick-pod");
  const restart = (isIt: (step: StepOf<"kick-pod">) => boolean, why: string): readonly string[] => {
    const pods = restarts.filter(isIt);
    return pods.length === 0
      ? []
      : [`restart ${pods.map(({ namespace, name }) => `${namespace}/${name}`).join(", ")}${why}`];
  };
  return [
    ...steps.filter(({ kind }) => kind !== "kick-pod").map(planned),
    ...restart(({ mayCrash, waitsForVolumes }) => !mayCrash && !waitsForVolumes, ", which crashed without it"),
    ...restart(({ mayCrash }) => mayCrash === true, " if it has crashed without it by then"),
    ...restart(({ waitsForVolumes }) => waitsForVolumes === true, " if its volumes still wait for it"),
  ];
}

/** What a healed action did, for events and records. */
export function doneInWords(action: Steps, undone: readonly Step[] = []): string {
  return joined(action, undone, done) || "healed without a change";
}

/** An action in a table cell: `quarantine, remove`. Steps that only wait or clean up are left out. */
export function shortAction(action: Steps): string {
  return joined(action, [], ({ kind }) => STEPS[kind].words.short?.[0]) || "wait";
}

/** Whether an action that did not heal has done some of its steps. */
export function hasDoneSteps({ steps, followUps = [] }: Steps, undone: readonly Step[] | undefined): boolean {
  return undone !== undefined && [...steps, ...followUps].some((step) => !undone.includes(step));
}

/** The same for an ended action, without the steps that were not needed: `quarantined, removed`. */
export function shortDone(action: Steps, undone: readonly Step[] = []): string {
  const did = joined(action, undone, ({ kind }) => STEPS[kind].words.short?.[1]);
  if (did !== "") return did;
  const leftToKubelet = action.steps.some((step) => step.kind === "await-kubelet" && !undone.includes(step));
  return leftToKubelet ? "finished by kubelet" : "no change";
}

function joined(
  { steps, followUps = [] }: Steps,
  without: readonly Step[],
  wordsOf: (step: Step) => string | undefined,
): string {
  const words = [...untilRemoval(steps), ...followUps].flatMap((step) =>
    without.includes(step) ? [] : (wordsOf(step) ?? []),
  );
  return [...new Set(words)].join(", ");
}

function targetOf<Kind extends StepKind>(step: StepOf<Kind>): string | undefined {
  return STEPS[step.kind].words.target?.(step);
}

function planned<Kind extends StepKind>(step: StepOf<Kind>): string {
  return STEPS[step.kind].words.planned(step);
}

function done<Kind extends StepKind>(step: StepOf<Kind>): string | undefined {
  return STEPS[step.kind].words.done?.(step);
}
