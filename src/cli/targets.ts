import type { Diagnosis } from "../diagnose/diagnose.ts";
import type { Selection, Target, TargetProblem } from "../diagnose/select.ts";
import { printable } from "../host/text.ts";
import type { NodeReport } from "../report/node-report.ts";
import { anyArguments } from "./commands/index.ts";
import { SettingsError } from "./settings/kinds.ts";

/** What scan and heal can be narrowed to. */
export const targetsParameter = anyArguments("TARGET", "NAMESPACE/POD, sandbox id or finding id (default: all)");

/** `scan|heal [TARGET]... [-n NAMESPACE]`, as the command line gives it. */
export function selectionOf(targets: readonly string[], namespaces: readonly string[] = []): Selection | undefined {
  return targets.length + namespaces.length === 0 ? undefined : { targets, namespaces };
}

/**
 * Limits every scan of one run to the named targets, which the first scan resolves. An unknown or ambiguous target is a
 * usage error: ignoring it would mean "nothing is wrong with it".
 */
export async function selecting(selection: Selection | undefined): Promise<(diagnosis: Diagnosis) => Diagnosis> {
  if (selection === undefined) return (diagnosis) => diagnosis;
  const { resolveTargets, select } = await import("../diagnose/select.ts");
  let resolved: readonly Target[] | undefined;
  return (diagnosis) => {
    const { node, cri } = diagnosis.view.snapshot;
    // Without the runtime's list the state of the node is unknown.
    if (resolved === undefined && cri.status !== "read") return diagnosis;
    if (resolved === undefined) {
      const { targets, problems } = resolveTargets(selection, diagnosis);
      const [problem] = problems;
      if (problem !== undefined) throw new SettingsError(problemSentence(problem, node));
      resolved = targets;
    }
    return select(diagnosis, resolved, selection.namespaces);
  };
}

function problemSentence(problem: TargetProblem, node: string): string {
  const target = printable(problem.target);
  if (problem.code === "ambiguous-target") {
    return `"${target}" names ${problem.candidates.length} things on ${printable(node)}: ${problem.candidates.slice(0, 5).map(printable).join(", ")}`;
  }
  return `no pod, sandbox or finding "${target}" on ${printable(node)}: name a NAMESPACE/POD, a sandbox id (4 characters or more) or a finding id; unghost scan -o name lists the findings`;
}

/** The report with its selection. */
export function withSelection(report: NodeReport, selection: Selection | undefined): NodeReport {
  if (selection === undefined) return report;
  const { targets, namespaces } = selection;
  return { ...report, selection: { targets: [...targets], namespaces: [...namespaces] } };
}

/** Ids for the classes that --only, --skip or --allow name by id or code: a mistyped one must not silently mean "none". */
export async function classIds(names: readonly string[]): Promise<readonly string[]> {
  if (names.length === 0) return names;
  const { classes, classNamed } = await import("../classes/index.ts");
  const { didYouMean } = await import("./suggest.ts");
  return names.map((name) => {
    const known = classNamed(name);
    if (known !== undefined) return known.id;
    const ids = classes.map(({ id }) => id);
    const hint = didYouMean(name, ids) || "; unghost explain --list names them all";
    throw new SettingsError(`unknown failure class "${name}"${hint}`);
  });
}

export async function withClassIds<T extends { readonly only: readonly string[]; readonly skip: readonly string[] }>(
  settings: T,
): Promise<T> {
  return { ...settings, only: await classIds(settings.only), skip: await classIds(settings.skip) };
}
