import { STEPS, type Step, type StepKind, type StepOf, untilRemoval } from "../evidence/step.ts";
import type { PlannedAction } from "../plan/plan.ts";

type Steps = Pick<PlannedAction, "steps" | "followUps">;

/** What would be done, for the plan. */
export function stepWords({ steps, followUps = [] }: Steps): readonly string[] {
  const decisive = untilRemoval(steps);
  const words = decisive.map(planned);
  if (decisive.some(({ kind }) => kind === "remove-sandbox")) words.push("check that its network is released");
  return [...new Set([...words, ...followUpsInWords(followUps)])];
}

function followUpsInWords(steps: readonly Step[]): readonly string[] {
  const restarts = steps.filter((step) => step.kind === "kick-pod");
  const restart = (mayCrash: boolean, why: string): readonly string[] => {
    const pods = restarts.filter((step) => (step.mayCrash ?? false) === mayCrash);
    return pods.length === 0
      ? []
      : [`restart ${pods.map(({ namespace, name }) => `${namespace}/${name}`).join(", ")}${why}`];
  };
  return [
    ...steps.filter(({ kind }) => kind !== "kick-pod").map(planned),
    ...restart(false, ", which crashed without it"),
    ...restart(true, " if it has crashed without it by then"),
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

function planned<Kind extends StepKind>(step: StepOf<Kind>): string {
  return STEPS[step.kind].words.planned(step);
}

function done<Kind extends StepKind>(step: StepOf<Kind>): string | undefined {
  return STEPS[step.kind].words.done?.(step);
}
