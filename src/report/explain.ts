import type { FailureClass } from "../classes/failure-class.ts";
import { classById } from "../classes/index.ts";
import type { Group } from "../diagnose/explain/group.ts";
import type { NamedPod } from "../node/types/ids.ts";
import { type Column, plainTable } from "./output.ts";
import { paint, wrap } from "./words.ts";

export interface Style {
  readonly width: number;
  readonly colour: boolean;
}

const MAX_NAMED = 10;
/** Like crictl; scan and heal accept them as an id. */
const ID_CHARACTERS = 13;

/** Renders the classes of pasted log lines. */
export function renderGroups(groups: readonly Group[], style: Style): string {
  return groups.map((group) => renderGroup(group, style)).join("\n");
}

function renderGroup(group: Group, style: Style): string {
  const known = classById(group.class);
  if (!known) return "";
  const times = group.count === 1 ? "" : ` (${group.count} times)`;
  const parts = [
    `${paint(style.colour).bold(known.title)}${times}`,
    paint(style.colour).dim(
      wrap(
        `${known.code} ${known.id}, ${Math.round(group.confidence * 100)} % confidence from this line alone`,
        style.width,
      ),
    ),
    ...concerned(group, style),
    "",
    wrap(known.explanation, style.width),
    ...section("Why it happens", [known.mechanism], style),
    ...treatment(known, style),
    ...section("Manual steps", steps(known.byHand.map((line) => withIds(line, group))), style),
    ...section("Warning", [known.danger], style),
    ...alternatives(group, style),
    ...section("On the node", nodeCommands(group), style),
  ];
  return `${parts.join("\n")}\n`;
}

function concerned({ pods, sandboxIds }: Group, style: Style): readonly string[] {
  const ids = sandboxIds.map((id) => id.slice(0, ID_CHARACTERS));
  return [listed("Pods", pods.map(podName)), listed("Sandboxes", ids)].flatMap((line) =>
    line === undefined ? [] : [wrap(line, style.width)],
  );
}

function listed(what: string, names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  const more = names.length - MAX_NAMED;
  return `${what}: ${names.slice(0, MAX_NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Containers and leases have their own ids. */
const OTHER_ID = /crictl (?:inspect|stop|rm) <id>|leases rm <id>/;

/** Replaces `<id>` in a command by the sandbox's id, if the lines contain exactly one. */
function withIds(line: string, { sandboxIds, pods }: Group): string {
  const [id] = sandboxIds;
  const [pod] = pods;
  const named = pod === undefined || pods.length > 1 ? line : withPod(line, pod);
  return id === undefined || sandboxIds.length > 1 || OTHER_ID.test(line) ? named : named.replaceAll("<id>", id);
}

function withPod(line: string, { namespace, name, uid }: NamedPod): string {
  const named = line.replaceAll("<namespace>", namespace).replaceAll("<pod>", name);
  return uid === undefined ? named : named.replaceAll("<uid>", uid);
}

/** Commands to check it on the node, for the only sandbox or pod in the lines. */
function nodeCommands({ sandboxIds, pods }: Group): readonly string[] {
  const [pod] = pods;
  const target = sandboxIds.length === 1 ? sandboxIds[0]?.slice(0, ID_CHARACTERS) : pod && podName(pod);
  const all = target === undefined || sandboxIds.length > 1 || pods.length > 1;
  return all
    ? ["unghost scan", "unghost heal --dry-run"]
    : [`unghost scan ${target}`, `unghost heal --dry-run ${target}`];
}

function podName(pod: NamedPod): string {
  return `${pod.namespace}/${pod.name}`;
}

function alternatives(group: Group, style: Style): readonly string[] {
  const others = group.alternatives.map((id) => classById(id)).filter((one) => one !== undefined);
  const lines: string[] = [];
  if (others.length > 0) {
    lines.push(
      ...section("Other candidates", bullets(others.map((one) => `${one.title} (${one.code} ${one.id})`)), style),
    );
  }
  if (group.decides !== undefined) lines.push(...section("How to distinguish them", [group.decides], style));
  return lines;
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
