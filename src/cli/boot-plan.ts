import type { BootPlan } from "../boot/boot-plan.ts";
import { printable } from "../host/printable.ts";
import { count } from "../report/text.ts";
import { ExitCode } from "./exit-codes.ts";

const WAYS: Readonly<Record<BootPlan["way"], string>> = {
  nothing: "would do nothing",
  failed: "could not heal",
  "through-runtime": "would heal through the running runtime",
  borrow: "would heal through a borrowed containerd",
  "caches-only": "could use no runtime, and would only move broken cache files to quarantine",
};

export function renderBootPlan({ way, reason, heal, leave }: BootPlan): string {
  const lines = [`unghost boot ${WAYS[way]}: ${reason}`];
  if (heal.length > 0) lines.push(`Would heal (${heal.length}):`, ...heal.map((id) => `  ${id}`));
  if (leave.length > 0) lines.push(`Would leave (${leave.length}):`, ...leave.map((id) => `  ${id}`));
  lines.push(`Dry run: nothing was changed; ${count(heal.length, "finding")} to heal.`);
  return `${lines.map(printable).join("\n")}\n`;
}

/** As of the boot itself: 1 something is there, 2 it could not be healed. */
export function strictExitOf({ way, heal, leave }: BootPlan): ExitCode {
  if (way === "failed" || way === "caches-only") return ExitCode.unknown;
  return heal.length + leave.length > 0 ? ExitCode.findings : ExitCode.ok;
}
