import { printable } from "../host/text.ts";
import type { HealAnswer, HealedAction } from "../kube/ghost-heal.ts";
import type { NodeReport, ReportedAction } from "../report/node-report.ts";
import { NEW_PLAN, renderShownPlan, shownDigest } from "../report/shown-plan.ts";
import { subjectInWords } from "../report/words.ts";
import type { HealRequest } from "./ask-node.ts";
import type { NodeResult } from "./heal-report.ts";
import { type Failure, isFailure } from "./one-shot/failure.ts";
import type { OneShot } from "./one-shot/job.ts";
import { type Ended, type OpenApi, type RunOptions, runOnce } from "./one-shot/run.ts";
import { reportInLog } from "./one-shot/scan.ts";

/** As the agent of a node has it; see ask-node.ts. */
const HEAL_SECONDS = 15 * 60;
const PLAN_SECONDS = 120;

/** What an operator chose on one node, and where the pod runs. */
export interface PodHeal extends RunOptions {
  readonly open: OpenApi;
  readonly node: string;
  readonly place: Pick<OneShot, "image" | "namespace">;
  readonly selection: Pick<HealRequest, "targets" | "namespaces">;
  /** Manual classes. */
  readonly allow: readonly string[];
  readonly columns: number;
}

export type PodRequest = Pick<HealRequest, "dryRun" | "planDigest">;

/** Asks the node by one-shot pods: for its plan, then to heal by the plan whose digest the operator has seen. */
export function podHealer(heal: PodHeal): (request: PodRequest) => Promise<NodeResult> {
  const { node, place, open } = heal;
  /** The pods that the plan named. */
  const pods = new Map<string, string>();
  return async (request) => {
    const { dryRun } = request;
    const shot = {
      ...place,
      node,
      args: argsFor(heal, request),
      deadlineSeconds: dryRun ? PLAN_SECONDS : HEAL_SECONDS,
    };
    const ran = await runOnce(open, shot, { ...heal, line: dryRun ? undefined : progressOnly(heal.line) });
    if (!ran.ok) return withoutAnswer(node, ran.failure, dryRun);
    if (ran.value.code === REFUSED || ran.value.code === WRONG_USAGE) return answered(node, refusal(ran.value));
    const report = reportInLog(ran.value, shot);
    if (isFailure(report)) return withoutAnswer(node, report, dryRun);
    for (const { id, subject } of report.findings)
      if (subject.pod !== undefined) pods.set(id, `${subject.pod.namespace}/${subject.pod.name}`);
    return answered(node, report.planDigest === undefined ? healed(report, pods) : plan(report, heal.columns));
  };
}

function argsFor({ selection, allow }: PodHeal, { dryRun, planDigest = "" }: PodRequest): readonly string[] {
  const { targets, namespaces } = selection;
  return [
    "heal",
    ...targets,
    ...namespaces.map((name) => `--namespace=${name}`),
    ...allow.map((id) => `--allow=${id}`),
    dryRun ? "--dry-run" : `--plan=${planDigest}`,
    "-o",
    "json",
  ];
}

function answered(node: string, answer: HealAnswer): NodeResult {
  return { node, outcome: answer.outcome, answer };
}

/** The lines before the report. */
function progressOnly(line: RunOptions["line"]): RunOptions["line"] {
  let isReport = false;
  return (text) => {
    isReport ||= text === "{";
    if (!isReport && text.trim() !== "") line?.(printable(text));
  };
}

function withoutAnswer(node: string, { code, message, next }: Failure, dryRun: boolean): NodeResult {
  const isUnknown = !dryRun && HAS_STARTED.has(code);
  const outcome = isUnknown ? "unknown" : "no-answer";
  const left = isUnknown ? "What was done by then is in the node's journal: unghost history on the node. " : "";
  return { node, outcome, code, message: `${capital(message)}.`, next: `${left}${capital(next)}` };
}

/** The pod may have run. */
const HAS_STARTED: ReadonlySet<Failure["code"]> = new Set(["deadline", "no-report", "interrupted", "api"]);

function capital(text: string): string {
  return /^(?:kubectl|talosctl|ssh) /.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1);
}

const REFUSED = 3;
const WRONG_USAGE = 64;
const NOTHING_CHANGED = /^(?:unghost: |Nothing was changed: ).*$/m;

function refusal({ log, code }: Ended): HealAnswer {
  const [line = "unghost on the node refused it without a reason"] = NOTHING_CHANGED.exec(log) ?? [];
  const [message = "", other] = printable(line).split(` ${NEW_PLAN} `);
  if (other !== undefined)
    return {
      outcome: "refused",
      code: "plan-changed",
      message,
      next: "Run the command again: it shows the plan of now.",
    };
  return { outcome: "refused", code: code === WRONG_USAGE ? "usage" : "guard", message };
}

function plan(report: NodeReport, columns: number): HealAnswer {
  return {
    outcome: "planned",
    verdict: report.verdict,
    planDigest: shownDigest(report),
    plan: renderShownPlan(report, columns),
    totals: { planned: plannedIn(report), healed: 0, left: report.findings.length },
  };
}

function plannedIn({ actions = [] }: NodeReport): number {
  return actions.filter(({ code }) => code === "dry-run").length;
}

function healed(report: NodeReport, pods: ReadonlyMap<string, string>): HealAnswer {
  const { actions, findings, verdict } = report;
  // Without a runtime there is no plan, and nothing is healed.
  const isUnread = actions === undefined;
  const done = (actions ?? []).filter(({ outcome }) => outcome === "healed").length;
  return {
    outcome: isUnread || verdict === "unknown" ? "unknown" : verdict === "healthy" ? "healed" : "incomplete",
    verdict,
    message: isUnread ? unreadable(report) : undefined,
    actions: (actions ?? []).map((action) => actionOf(action, pods)),
    totals: { planned: actions?.length ?? 0, healed: done, left: findings.length },
    left: findings.map(({ class: id, subject }) => `${id}  ${subjectInWords(subject)}`),
  };
}

function actionOf(action: ReportedAction, pods: ReadonlyMap<string, string>): HealedAction {
  const { finding, outcome, reason, journalId, seconds } = action;
  const [failureClass = ""] = finding.split("/");
  return { finding, class: failureClass, pod: pods.get(finding), outcome, reason, journalId, seconds };
}

function unreadable({ problems }: NodeReport): string {
  const problem = problems.find(({ source }) => source === "cri")?.problem ?? "none was found";
  return `The container runtime cannot be read: ${problem}.`;
}
