import { printable } from "../host/text.ts";
import { count, paint, type TextOptions, wrap } from "../report/words.ts";
import type { Before, Hazard } from "./restart.ts";

const EVENT = {
  reboot: "a reboot",
  runtime: "a restart of the container runtime",
  cni: "a restart of the network's DaemonSet",
} as const;

export function renderBefore(
  { restart, survives, hazards, findings }: Before,
  node: string,
  { colour, columns, verbose }: TextOptions,
): string {
  const ink = paint(colour);
  const of = (level: Hazard["level"]) => hazards.filter((one) => one.level === level);
  const where = `${printable(node)}: ${EVENT[restart]}`;
  const verdict = {
    yes: `${ink.green("SURVIVES")}  ${where} is survived, as far as files and processes of the node show`,
    no: `${ink.red("DOES NOT SURVIVE")}  ${where} is not survived: ${count(of("stops").length, "reason")}`,
    unknown: `${ink.yellow("UNKNOWN")}  ${where}: ${count(of("unknown").length, "check")} could not be made`,
  }[survives];
  const words = { stops: ink.red("stops"), unknown: ink.yellow("unknown"), note: "note" } as const;
  const shown = hazards.filter(({ level }) => verbose || level !== "note");
  const lines = shown.map(({ id, level, detail, end }) =>
    wrap(`  ${words[level]}  ${id}: ${printable(detail)}. Before it: ${printable(end)}.`, columns, "    "),
  );
  const present =
    findings > 0 ? [`${count(findings, "finding")} on the node now, with or without it: unghost scan`] : [];
  const notes = of("note").length;
  const more = !verbose && notes > 0 ? [`${count(notes, "note")} with -v.`] : [];
  return `${[wrap(verdict, columns, "  "), ...lines, ...present, ...more].join("\n")}\n`;
}
