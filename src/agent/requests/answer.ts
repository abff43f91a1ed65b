import type { Diagnosis } from "../../diagnose/diagnose.ts";
import { resolveTargets, select, type Target, type TargetProblem } from "../../diagnose/select.ts";
import { podOf } from "../../evidence/finding.ts";
import type { Healing } from "../../heal/pipeline.ts";
import type { ActionResult } from "../../heal/run-action.ts";
import { printable, truncate } from "../../host/text.ts";
import type { GhostHealSpec, HealAnswer, HealedAction } from "../../kube/ghost-heal.ts";
import type { Plan } from "../../plan/plan.ts";
import { capped, DEFAULT_CAP } from "../../plan/policy.ts";
import { planDigest, unchangedSince } from "../../plan/saved-plan.ts";
import type { Planned } from "../../plan/scan.ts";
import { problemsIn } from "../../report/build.ts";
import { renderPlan } from "../../report/plan.ts";
import { subjectInWords } from "../../report/words.ts";
import type { AskedOutcome, Cycle } from "../cycle.ts";
import type { AgentPolicy } from "../policy/agent-policy.ts";
import { clusterPause, permittedPlan } from "../policy/decisions.ts";

export interface AnswerTools {
  readonly cycle: Pick<Cycle, "scanOnly" | "alone" | "healAsked">;
  readonly policy: () => AgentPolicy;
  readonly ownPodUid: string | undefined;
}

/** What of a scan was asked for, and the plan for it. */
interface Chosen {
  readonly diagnosis: Diagnosis;
  readonly plan: Plan;
}

/**
 * Scans, and heals if the plan is the one that the operator has seen. An operator decides in place of the agent's
 * policy: age, budget and maintenance windows do not count, and an observed class is healed. Proofs, pauses, opt-outs
 * and the limits of the fleet hold as always.
 */
export async function answerRequest(spec: GhostHealSpec, tools: AnswerTools): Promise<HealAnswer> {
  const answer = async () => {
    const seen = await tools.cycle.scanOnly();
    const unread = unreadable(seen);
    if (unread !== undefined) return unread;
    const named = targetsIn(seen, spec);
    if ("outcome" in named) return named;
    const choose = chooser(spec, named.targets, tools);
    return spec.dryRun ? planAnswer(seen, choose(seen), spec) : await heal(seen, choose, spec, tools.cycle);
  };
  return spec.dryRun ? await answer() : await tools.cycle.alone(answer);
}

function planAnswer({ snapshot }: Planned, { diagnosis, plan }: Chosen, { columns }: GhostHealSpec): HealAnswer {
  const { actions, leftAlone } = plan;
  const context = { view: diagnosis.view, problems: problemsIn(snapshot), where: snapshot.node };
  const options = { colour: false, columns, screenColumns: columns, verbose: false };
  const isEmpty = actions.length + leftAlone.length === 0;
  return {
    outcome: "planned",
    verdict: diagnosis.verdict,
    planDigest: planDigest(plan),
    ...withPlanText(isEmpty ? `Nothing to heal on ${snapshot.node}.\n` : renderPlan(plan, context, options)),
    totals: { planned: actions.length, healed: 0, left: diagnosis.findings.length },
  };
}

type Choose = (planned: Planned) => Chosen;

async function heal(seen: Planned, choose: Choose, spec: GhostHealSpec, cycle: AnswerTools["cycle"]) {
  const shown = choose(seen);
  const objection = paused(seen) ?? changed(spec, shown.plan);
  if (objection !== undefined) return objection;
  if (shown.plan.actions.length === 0) return nothingToDo(shown);
  const narrow = unchangedSince(shown.plan);
  const healed = await cycle.healAsked(seen, (now) => narrow(choose(now).plan));
  return healed.ok ? ended(healed.value, choose(healed.value)) : refusedBy(healed);
}

function chooser(
  { namespaces }: GhostHealSpec,
  targets: readonly Target[],
  { policy, ownPodUid }: AnswerTools,
): Choose {
  const isAll = targets.length + namespaces.length === 0;
  return ({ diagnosis: all, plan: whole }) => {
    const diagnosis = isAll ? all : select(all, targets, namespaces);
    const plan = permittedPlan(isAll ? whole : within(whole, diagnosis), all.view, { policy: policy(), ownPodUid });
    return { diagnosis, plan: { ...plan, actions: capped(plan.actions, DEFAULT_CAP).actions } };
  };
}

/** The part of a plan that is about selected findings. Pods that were not named are not restarted. */
function within({ actions, leftAlone }: Plan, { findings }: Diagnosis): Plan {
  const selected = new Map(findings.map((finding) => [finding.id, finding]));
  return {
    leftAlone: leftAlone.filter(({ finding }) => selected.has(finding.id)),
    actions: actions.flatMap((action) => {
      const finding = selected.get(action.finding.id);
      if (finding === undefined) return [];
      return action.followUps === undefined ? [action] : [{ ...action, followUps: finding.followUps }];
    }),
  };
}

function targetsIn({ diagnosis }: Planned, { targets, namespaces }: GhostHealSpec) {
  const { targets: resolved, problems } = resolveTargets({ targets, namespaces }, diagnosis);
  const [problem] = problems;
  if (problem === undefined) return { targets: resolved };
  return refusal(problem.code, wordsOf(problem), "kubectl unghost scan -o wide lists the pods that are blocked.");
}

function wordsOf(problem: TargetProblem): string {
  const target = printable(problem.target);
  return problem.code === "ambiguous-target"
    ? `"${target}" names ${problem.candidates.length} things on this node.`
    : `There is no pod, sandbox or finding "${target}" on this node.`;
}

function unreadable({ snapshot }: Planned): HealAnswer | undefined {
  if (snapshot.cri.status === "read") return undefined;
  const problem = problemsIn(snapshot).find(({ source }) => source === "cri")?.problem ?? "none was found";
  const message = `The container runtime cannot be read: ${problem}.`;
  return { ...refusal("unreadable", message, "Run unghost doctor on the node."), outcome: "unknown" };
}

function paused({ diagnosis: { view } }: Planned): HealAnswer | undefined {
  const pause = clusterPause(view);
  if (pause === undefined) return undefined;
  const mark = pause.reason === "paused" ? "unghost.dev/paused" : "unghost.dev/ignore";
  return refusal(pause.reason, `Nothing is healed: ${pause.message}.`, `Remove ${mark} from the node.`);
}

function changed({ planDigest: shown }: GhostHealSpec, plan: Plan): HealAnswer | undefined {
  if (shown === planDigest(plan)) return undefined;
  return refusal(
    "plan-changed",
    "The node has changed since the plan was shown: another plan holds now.",
    "Ask for the plan again.",
  );
}

function nothingToDo({ diagnosis }: Chosen): HealAnswer {
  const { findings, verdict } = diagnosis;
  return { outcome: verdict === "healthy" ? "healed" : "incomplete", verdict, ...whatIsLeft(findings, 0, 0) };
}

function refusedBy({ refusal: { message, next, kind }, limit }: Extract<AskedOutcome, { ok: false }>): HealAnswer {
  return refusal(limit?.reason ?? kind ?? "guard", message, next);
}

function refusal(code: string, message: string, next: string): HealAnswer {
  return {
    outcome: "refused",
    code,
    message: safeText(message, LONGEST_MESSAGE),
    next: safeText(next, LONGEST_MESSAGE),
  };
}

const MOST_ACTIONS = 100;

function ended({ results }: Healing, { diagnosis: { findings, verdict } }: Chosen): HealAnswer {
  const healed = results.filter(({ outcome }) => outcome === "healed").length;
  const outcome = verdict === "healthy" ? "healed" : verdict === "unknown" ? "unknown" : "incomplete";
  const left = whatIsLeft(findings, results.length, healed);
  return {
    outcome,
    verdict,
    // Failures first: they are what an operator continues with.
    actions: results
      .toSorted((one, other) => Number(one.outcome === "healed") - Number(other.outcome === "healed"))
      .slice(0, MOST_ACTIONS)
      .map(actionOf),
    ...left,
    truncated: left.truncated || results.length > MOST_ACTIONS,
  };
}

const LONGEST_REASON = 300;
const LONGEST_ID = 512;
const LONGEST_POD = 317;

function actionOf({ action: { finding }, outcome, reason, journalId, seconds }: ActionResult): HealedAction {
  const pod = podOf(finding.subject);
  return {
    finding: safeText(finding.id, LONGEST_ID),
    class: finding.class,
    pod: pod && safeText(`${pod.namespace}/${pod.name}`, LONGEST_POD),
    outcome,
    reason: reason && safeText(reason, LONGEST_REASON),
    journalId,
    seconds: Math.round(seconds * 10) / 10,
  };
}

const MOST_LEFT = 20;
const LONGEST_LEFT = 400;

function whatIsLeft(findings: Diagnosis["findings"], planned: number, healed: number) {
  const words = findings.map((finding) =>
    safeText(`${finding.class}  ${subjectInWords(finding.subject)}`, LONGEST_LEFT),
  );
  return {
    totals: { planned, healed, left: findings.length },
    left: words.length === 0 ? undefined : words.slice(0, MOST_LEFT),
    truncated: words.length > MOST_LEFT,
  };
}

const LONGEST_MESSAGE = 1000;

function safeText(text: string, longest: number): string {
  return truncate(printable(text), longest);
}

const LONGEST_PLAN = 20_000;

function withPlanText(text: string): Pick<HealAnswer, "plan" | "truncated"> {
  if (text.length <= LONGEST_PLAN) return { plan: text, truncated: false };
  const shown = text.slice(0, text.lastIndexOf("\n", LONGEST_PLAN));
  return { plan: `${shown}\n… and more: run unghost heal --dry-run on the node\n`, truncated: true };
}
