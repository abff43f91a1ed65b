/** The read-only parts of unghost for other programs: the failure classes, log recognition, and the report's type. */
import * as v from "valibot";
import type { FailureClass } from "../classes/failure-class.ts";
import { classes } from "../classes/index.ts";
import { grouper } from "../diagnose/explain/group.ts";
import { answersIn, explainText } from "../diagnose/explain/lines.ts";
import type { Match } from "../diagnose/explain/recognise.ts";
import { renderAnswers } from "../report/explain-answers.ts";
import { type NodeReport, NodeReportSchema } from "../report/node-report.ts";

export type { Match } from "../diagnose/explain/recognise.ts";
export type { NodeReport, ReportedAction, ReportedFinding, ReportedPending } from "../report/node-report.ts";

/** What is known about one failure class. */
export type FailureClassInfo = Pick<
  FailureClass,
  | "id"
  | "code"
  | "category"
  | "title"
  | "explanation"
  | "mechanism"
  | "affected"
  | "versions"
  | "treatment"
  | "byHand"
  | "danger"
  | "links"
>;

export const failureClasses: readonly FailureClassInfo[] = classes.map(
  ({ id, code, category, title, explanation, mechanism, affected, versions, treatment, byHand, danger, links }) => ({
    id,
    code,
    category,
    title,
    explanation,
    mechanism,
    affected,
    versions,
    treatment,
    byHand,
    danger,
    links,
  }),
);

export interface Explanation extends Match {
  readonly info: FailureClassInfo;
}

/** The failure classes of log lines, in the order of the lines; the most likely class of a line first. */
export function explain(text: string): readonly Explanation[] {
  return explainText(text)
    .flat()
    .flatMap((match) => {
      const info = failureClasses.find(({ id }) => id === match.class);
      return info === undefined ? [] : [{ ...match, info }];
    });
}

/**
 * What `unghost explain` prints about a text, in lines of up to this width. Empty if the text contains no failing sandbox,
 * network or volume operation.
 */
export function explainInWords(text: string, width = 100): string {
  const known = grouper();
  for (const answer of answersIn(text)) known.add(answer);
  return renderAnswers(known.groups(), { width, colour: false, verbose: false });
}

/** Validates the output of `unghost scan -o json`. Throws if it is not a report of this API version. */
export function parseNodeReport(json: string): NodeReport {
  return v.parse(NodeReportSchema, JSON.parse(json));
}
