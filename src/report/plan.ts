import { classById } from "../classes/index.ts";
import type { Step } from "../classes/step.ts";
import type { Plan, PlannedAction } from "../plan/plan.ts";
import { planReasonInWords } from "../plan/plan-reason.ts";
import { evidenceLines, evidenceOfFirst } from "./evidence.ts";
import type { NodeReport } from "./node-report.ts";
import { renderProblems } from "./problems.ts";
import { subjectInWords } from "./subject-words.ts";
import { count, paint, printable, type TextOptions, wrap } from "./text.ts";

const NAMED_SUBJECTS = 10;

/** The plan for people: what would be done, on which proof, what is left alone and why, and what nobody could see. */
export function renderPlan(plan: Plan, problems: NodeReport["problems"], options: TextOptions): string {
  const { colour, columns, verbose } = options;
  const ink = paint(colour);
  const parts: string[] = [];
  const groups = Map.groupBy(plan.actions, ({ finding, reason, steps }) =>
    [finding.class, planReasonInWords(reason), steps.map(({ kind }) => kind).join()].join("\n"),
  );
  for (const actions of groups.values()) {
    const [first] = actions;
    if (first === undefined) continue;
    const title = classById(first.finding.class)?.title ?? "";
    const lines = [wrap(`${ink.bold(first.finding.class)}  ${title} (${actions.length})`, columns, "  ")];
    const named = verbose ? actions : actions.slice(0, NAMED_SUBJECTS);
    for (const { finding } of named) {
      lines.push(wrap(`  ${printable(subjectInWords(finding.subject))}`, columns, "    "));
      if (verbose) lines.push(...evidenceLines(finding.evidence, ink, columns));
    }
    if (actions.length > named.length)
      lines.push(ink.dim(`  … and ${actions.length - named.length} more (-v names them)`));
    lines.push(wrap(`  unghost will ${stepsInWords(first)}`, columns, "    "));
    lines.push(wrap(`  because ${printable(planReasonInWords(first.reason))}`, columns, "    "));
    for (const { finding } of actions) {
      if (finding.aftermath !== undefined) lines.push(wrap(`  ${printable(finding.aftermath)}`, columns, "    "));
    }
    if (!verbose) {
      const findings = actions.map(({ finding }) => finding);
      lines.push(...evidenceOfFirst(findings, ink, columns));
    }
    parts.push(lines.join("\n"));
  }
  if (plan.leftAlone.length > 0) {
    const lines = [ink.bold(`Left alone (${plan.leftAlone.length})`)];
    const shown = verbose ? plan.leftAlone : plan.leftAlone.slice(0, NAMED_SUBJECTS);
    for (const { finding, reason } of shown) {
      lines.push(
        wrap(
          `  ${finding.class}  ${printable(subjectInWords(finding.subject))}: ${printable(planReasonInWords(reason))}`,
          columns,
          "    ",
        ),
      );
    }
    if (plan.leftAlone.length > shown.length) lines.push(`  … and ${plan.leftAlone.length - shown.length} more`);
    parts.push(lines.join("\n"));
  }
  if (problems.length > 0) parts.push(renderProblems(problems, options));
  const headline = ink.bold(`Plan: ${count(plan.actions.length, "action")}, ${plan.leftAlone.length} left alone`);
  return `${[headline, ...parts].join("\n\n")}\n`;
}

export function stepsInWords({ steps, afterwards = [] }: PlannedAction): string {
  const removal = steps.findIndex(({ kind }) => kind === "remove-sandbox");
  // What follows a removal only looks whether the runtime has left anything behind.
  const words =
    removal < 0
      ? steps.map(stepInWords)
      : [...steps.slice(0, removal + 1).map(stepInWords), "see that its network is released"];
  return [...new Set([...words, ...afterwardsInWords(afterwards)])].join(", then ");
}

function afterwardsInWords(steps: readonly Step[]): readonly string[] {
  const kicks = steps.filter((step) => step.kind === "kick-pod");
  const restart = (mayCrash: boolean, why: string): readonly string[] => {
    const pods = kicks.filter((kick) => (kick.mayCrash ?? false) === mayCrash);
    return pods.length === 0
      ? []
      : [`restart ${pods.map(({ namespace, name }) => `${namespace}/${name}`).join(", ")}${why}`];
  };
  return [
    ...steps.filter(({ kind }) => kind !== "kick-pod").map(stepInWords),
    ...restart(false, ", which crashed for want of it"),
    ...restart(true, " if it has crashed for want of it by then"),
  ];
}

function stepInWords(step: Step): string {
  switch (step.kind) {
    case "quarantine-file":
      return step.health === "orphaned"
        ? "move what is left of its cache to quarantine"
        : "move the broken file to quarantine (undo puts it back)";
    case "await-kubelet":
      return "watch kubelet finish by itself";
    case "stop-sandbox":
      return "stop the sandbox through the runtime";
    case "remove-sandbox":
      return "save its logs and remove it through the runtime";
    case "multus-marker":
      return "make multus' DEL safe for it";
    case "end-process":
      return "end the hung process";
    case "free-cni-lock":
      return `end the plugin processes that hold the CNI lock and see that the runtime answers Status${step.node === undefined ? "" : " and the node turns Ready"}`;
    case "restart-daemon":
      return `stop the daemon's container, so that kubelet starts it again, and see that it answers on ${step.socket}`;
    case "release-addresses":
      return "give back what addresses it still holds";
    case "replay-del":
      return "call DEL with the cached configuration";
    case "drop-empty-lease":
      return "move the ownerless address file to quarantine (undo puts it back)";
    case "remove-netns":
      return "remove the network namespace";
    case "await-socket":
      return step.optional ? "wait for the socket of its CSI driver" : "wait for its socket";
    case "kick-pod":
      return "delete the pod, so that its controller makes a new one under a name that nobody holds";
    case "delete-lease":
      return "delete the containerd lease";
    case "delete-volume-attachment":
      return "keep a copy of the VolumeAttachment and delete it, once its attacher is seen to answer";
  }
}
