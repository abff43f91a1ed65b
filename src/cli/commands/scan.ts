import { buildCommand } from "@stricli/core";
import { list, onOff, targetsParameter, text } from "../flag-kinds.ts";
import { nodeFlagAliases, nodeFlags } from "../node-settings.ts";
import type { ScanFlags } from "../scan.ts";
import type { ScanOfflineFlags } from "../scan-offline.ts";
import { SettingsError } from "../settings-error.ts";
import type { Context } from "./context.ts";

type Flags = ScanFlags & ScanOfflineFlags & { readonly offline?: boolean };

export const scan = buildCommand<Flags, string[], Context>({
  docs: { brief: "Look for ghosts; changes nothing. Exit 0 healthy, 1 findings, 2 could not tell" },
  parameters: {
    flags: {
      ...nodeFlags,
      output: { ...nodeFlags.output, brief: "table, wide, name, json or yaml" },
      all: onOff("One line for every finding; by default more than 20 are grouped"),
      noHeaders: onOff("Leave the column headings out"),
      namespace: list("Only pods of these namespaces", "NAMESPACE"),
      quiet: onOff("Print nothing: the exit code is the result"),
      watch: onOff("Scan again every --interval until interrupted"),
      interval: text("Pause between two scans with --watch (default 5s)", "DURATION"),
      oneLine: onOff("One line of 80 characters, as node-problem-detector wants it; the rest goes to stderr"),
      offline: onOff("Read containerd's database instead of asking it: for a runtime that is down"),
      containerdRoot: text("With --offline: containerd's root directory (default: found by itself)", "DIR"),
      containerdVersion: text("With --offline: the version that will be started, where it is known", "VERSION"),
    },
    positional: targetsParameter,
    aliases: { ...nodeFlagAliases, n: "namespace", q: "quiet", w: "watch" },
  },
  func: async function ({ offline, ...flags }, ...targets) {
    if (offline === true) {
      if (targets.length > 0) throw new SettingsError("targets are looked up in the runtime: leave --offline out");
      if (flags.oneLine === true) throw new SettingsError("--one-line asks a runtime that is up: leave --offline out");
      const { runScanOffline } = await import("../scan-offline.ts");
      this.finish(await runScanOffline(flags, this.io));
      return;
    }
    const { runScan } = await import("../scan.ts");
    this.finish(await runScan(flags, targets, this.io));
  },
});
