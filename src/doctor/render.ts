import { printable } from "../host/printable.ts";
import { count, paint, sentence, type TextOptions, wrap } from "../report/text.ts";
import type { Check, DoctorReport } from "./doctor-report.ts";

/** What is missing first, each with what it is needed for; then what works, in one line each. */
export function renderDoctor(report: DoctorReport, { colour, columns, verbose }: TextOptions): string {
  const ink = paint(colour);
  const of = (status: Check["status"]) => report.checks.filter((check) => check.status === status);
  const [missing, fine, absent] = [of("missing"), of("ok"), of("absent")];
  const { name, version, endpoint, reachable } = report.runtime;
  const verdict =
    missing.length === 0
      ? `${ink.green("OK")}  everything unghost needs is there`
      : `${ink.red("MISSING")}  ${count(missing.length, "check")} of ${report.checks.length} failed`;
  const head = [
    `${verdict} on ${printable(report.node)}`,
    `unghost ${report.version}; Linux ${printable(report.kernel)}; ${printable(report.os)}; node's root at ${report.hostRoot}`,
    reachable ? `${printable(`${name} ${version}`)} at ${printable(endpoint)}` : "runtime not reached",
    `Kubernetes: ${report.kubernetes.source}, credentials: ${printable(report.kubernetes.credentials)}`,
    ...(report.cniFiles === undefined ? [] : [printable(report.cniFiles.detail)]),
  ].map((line) => wrap(line, columns, "  "));
  const parts = [head.join("\n")];
  if (missing.length > 0) {
    const lines = missing.map(({ id, detail, neededFor, next }) => {
      const use = neededFor === undefined ? "" : ` Needed for: ${neededFor}.`;
      const advice = next === undefined ? "" : ` ${sentence(next)}`;
      return wrap(`  ${ink.red("missing")}  ${id}: ${printable(detail)}.${use}${printable(advice)}`, columns, "    ");
    });
    parts.push([ink.bold("Cannot read or do"), ...lines].join("\n"));
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
