import * as v from "valibot";
import { printable } from "../host/text.ts";
import { count, paint, sentence, type TextOptions, wrap } from "../report/words.ts";

/**
 * - `ok`: it works here.
 * - `missing`: it does not work, and something cannot be read or done because of it.
 * - `absent`: it does not exist on this node, which is normal.
 */
const CheckSchema = v.object({
  id: v.string(),
  status: v.picklist(["ok", "missing", "absent"]),
  detail: v.string(),
  /** What unghost needs it for. */
  neededFor: v.optional(v.string()),
  next: v.optional(v.string()),
  /** Of a missing one: everything is found and healed without it as well, on less evidence. */
  optional: v.optional(v.boolean()),
  /** Of a cluster: the nodes that it is about. */
  nodes: v.optional(v.array(v.string())),
});

export type Check = v.InferOutput<typeof CheckSchema>;

/** What makes ghosts likely on this node. It is no fault, and does not change the exit code. */
const RiskSchema = v.object({
  id: v.string(),
  detail: v.string(),
  /** The line or setting that ends it. */
  end: v.string(),
  /** Of a cluster: the nodes that it is about. */
  nodes: v.optional(v.array(v.string())),
});

export type Risk = v.InferOutput<typeof RiskSchema>;

export const DoctorReportSchema = v.object({
  apiVersion: v.literal("unghost.dev/v1"),
  kind: v.literal("DoctorReport"),
  version: v.string(),
  node: v.string(),
  hostRoot: v.string(),
  kernel: v.string(),
  os: v.string(),
  runtime: v.object({ name: v.string(), version: v.string(), endpoint: v.string(), reachable: v.boolean() }),
  kubernetes: v.object({ source: v.picklist(["api", "kubelet", "none"]), credentials: v.string() }),
  /** Whether a keeper syncs the files of CNI plugins here, in one line. */
  cniFiles: v.optional(v.object({ keptDurable: v.boolean(), detail: v.string() })),
  checks: v.array(CheckSchema),
  risks: v.optional(v.array(RiskSchema)),
});

export type DoctorReport = v.InferOutput<typeof DoctorReportSchema>;

export function passed(id: string, detail: string): Check {
  return { id, status: "ok", detail };
}

export function missing(id: string, detail: string, neededFor: string, next?: string): Check {
  return { id, status: "missing", detail, neededFor, next };
}

/** It would add evidence or comfort, and some places where unghost runs cannot have it. */
export function optionalCheck(check: Check): Check {
  return check.status === "missing" ? { ...check, optional: true } : check;
}

/** What unghost cannot do its work without. */
export function neededAndMissing({ checks }: Pick<DoctorReport, "checks">): readonly Check[] {
  return checks.filter(({ status, optional }) => status === "missing" && optional !== true);
}

export function absentCheck(id: string, detail: string): Check {
  return { id, status: "absent", detail };
}

/** Missing items first, each with what it is needed for; then one line for each working item. */
export function renderDoctor(report: DoctorReport, options: TextOptions): string {
  const { name, version, endpoint, reachable } = report.runtime;
  const head = [
    `${doctorVerdict(report, options)} on ${printable(report.node)}`,
    `unghost ${report.version}; Linux ${printable(report.kernel)}; ${printable(report.os)}; node's root at ${report.hostRoot}`,
    reachable ? `${printable(`${name} ${version}`)} at ${printable(endpoint)}` : "runtime not reached",
    `Kubernetes: ${report.kubernetes.source}, credentials: ${printable(report.kubernetes.credentials)}`,
    ...(report.cniFiles === undefined ? [] : [printable(report.cniFiles.detail)]),
  ];
  return renderChecks(head, report, options);
}

/** The checks of one node, or of the cluster. */
export type Checked = Pick<DoctorReport, "checks" | "risks">;

export function doctorVerdict(checked: Checked, { colour }: Pick<TextOptions, "colour">): string {
  const ink = paint(colour);
  const failing = neededAndMissing(checked);
  return failing.length === 0
    ? `${ink.green("OK")}  everything unghost needs is there`
    : `${ink.red("MISSING")}  ${count(failing.length, "needed check")} of ${checked.checks.length} failed`;
}

/** Behind the lines of the head. */
export function renderChecks(
  head: readonly string[],
  { checks, risks = [] }: Checked,
  { colour, columns, verbose }: TextOptions,
): string {
  const ink = paint(colour);
  const of = (status: Check["status"]) => checks.filter((check) => check.status === status);
  const failing = neededAndMissing({ checks });
  const optional = of("missing").filter((check) => !failing.includes(check));
  const [fine, absent] = [of("ok"), of("absent")];
  const parts = [head.map((line) => wrap(line, columns, "  ")).join("\n")];
  if (failing.length > 0) {
    const lines = failing.map((check) => wrap(`  ${ink.red("missing")}  ${inWords(check)}`, columns, "    "));
    parts.push([ink.bold("Cannot read or do"), ...lines].join("\n"));
  }
  if (optional.length > 0) {
    const lines = optional.map((check) => wrap(`  ${inWords(check)}`, columns, "    "));
    parts.push([ink.bold("Optional, and not here"), ...lines].join("\n"));
  }
  if (risks.length > 0) {
    const lines = risks.map(({ id, detail, end }) =>
      wrap(`  ${ink.yellow("risk")}  ${id}: ${printable(detail)}. Ended by: ${printable(end)}`, columns, "    "),
    );
    parts.push([ink.bold("Risks"), ...lines].join("\n"));
  }
  const width = Math.max(...fine.map(({ id }) => id.length), 0);
  const fineLines = fine.map(({ id, detail }) => `  ${id.padEnd(width)}  ${printable(detail)}`);
  parts.push([ink.bold("Works"), ...fineLines].join("\n"));
  if (verbose && absent.length > 0) {
    const lines = absent.map(({ id, detail }) => wrap(`  ${id}: ${printable(detail)}`, columns, "    "));
    parts.push([ink.bold("Not on this node"), ...lines].join("\n"));
  }
  return `${parts.join("\n\n")}\n`;
}

function inWords({ id, detail, neededFor, optional, next }: Check): string {
  const use = neededFor === undefined ? "" : ` ${optional === true ? "Would add" : "Needed for"}: ${neededFor}.`;
  const advice = next === undefined ? "" : ` ${sentence(next)}`;
  return `${id}: ${printable(detail)}.${use}${printable(advice)}`;
}
