import type { FailureClass } from "../classes/failure-class.ts";
import type { ClassGroup } from "../diagnose/explain/group.ts";
import { onlyTarget, withNames } from "./explain-names.ts";
import { type Column, plainTable } from "./output.ts";
import { paint, wrap } from "./words.ts";

export interface Style {
  readonly width: number;
  readonly colour: boolean;
}

/** The rest about a class, for a text that it was recognised in. */
export function renderClassParts(known: FailureClass, group: ClassGroup, style: Style): readonly string[] {
  return [
    ...section("Why it happens", [known.mechanism], style),
    ...treatment(known, style),
    ...section("Manual steps", steps(known.byHand.map((line) => withNames(line, group))), style),
    ...section("On the node", nodeCommands(group), style),
  ];
}

/** Commands to check it on the node, for the only sandbox or pod in the lines. */
function nodeCommands(group: ClassGroup): readonly string[] {
  const target = onlyTarget(group);
  return [`unghost scan${target}`, `unghost heal --dry-run${target}`];
}

/** The manual page of one class. */
export function renderClass(one: FailureClass, style: Style): string {
  const shows = "how" in one.inSnapshot ? one.inSnapshot.how : `Not visible in a scan: ${one.inSnapshot.why}`;
  const parts = [
    paint(style.colour).bold(one.title),
    paint(style.colour).dim(`${one.code} ${one.id}`),
    "",
    wrap(one.explanation, style.width),
    ...section("Why it happens", [one.mechanism], style),
    ...section(
      "How it reads in logs",
      one.signatures().map((signature) => signature.text),
      style,
    ),
    ...section("How it shows on a node", [shows], style),
    ...section("Versions", [one.versions], style),
    ...treatment(one, style),
    ...section("Manual steps", steps(one.byHand), style),
    ...section("Warning", [one.danger], style),
    ...section("Reports", one.links, style),
  ];
  return `${parts.join("\n")}\n`;
}

const CLASS_LIST: readonly Column[] = [
  { heading: "CODE" },
  { heading: "CLASS" },
  { heading: "HEAL", drop: "early" },
  { heading: "WHAT IT IS", shorten: { keep: "start", comfortable: 24, least: 20 }, drop: "late" },
];

/** One line per class, for `explain --list`; complete in a pipe, where no width is known. */
export function renderClassList(classes: readonly FailureClass[], screenColumns: number | undefined): string {
  const rows = classes.map(({ code, id, treatment: { mode }, title }) => [code, id, mode, title]);
  return `${plainTable(CLASS_LIST, rows, screenColumns).join("\n")}\n`;
}

function treatment({ treatment: { mode, steps: all, gates } }: FailureClass, style: Style): readonly string[] {
  if (mode === "none") return section("What unghost would do", [all[0] ?? "Nothing: there is nothing to heal."], style);
  const manner =
    mode === "automatic" ? "What unghost does automatically" : "What unghost proposes; an operator decides";
  return [...section(manner, steps(all), style), ...section("Proven before each step", bullets(gates), style)];
}

function steps(lines: readonly string[]): readonly string[] {
  return lines.length < 2 ? lines : lines.map((line, index) => `${index + 1}. ${line}`);
}

function bullets(lines: readonly string[]): readonly string[] {
  return lines.length < 2 ? lines : lines.map((line) => `- ${line}`);
}

function section(title: string, lines: readonly string[], style: Style): readonly string[] {
  if (lines.length === 0) return [];
  return ["", paint(style.colour).bold(title), ...lines.map((line) => wrap(`  ${line}`, style.width, hanging(line)))];
}

/** Indents the following lines of a numbered step under its text, not under its number. */
function hanging(line: string): string {
  return " ".repeat(2 + (/^(?:\d+\.|-) /.exec(line)?.[0].length ?? 0));
}
