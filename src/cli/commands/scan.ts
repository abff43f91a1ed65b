import { buildCommand } from "@stricli/core";
import { onOff, text } from "../flag-kinds.ts";
import { nodeFlagAliases, nodeFlags } from "../node-settings.ts";
import type { ScanFlags } from "../scan.ts";
import type { ScanOfflineFlags } from "../scan-offline.ts";
import { SettingsError } from "../settings-error.ts";
import type { Context } from "./context.ts";

type Flags = ScanFlags & ScanOfflineFlags & { readonly offline?: boolean };

export const scan = buildCommand<Flags, [], Context>({
  docs: { brief: "Look for ghosts; changes nothing. Exit 0 healthy, 1 findings, 2 could not tell" },
  parameters: {
    flags: {
      ...nodeFlags,
      oneLine: onOff("One line of 80 characters, as node-problem-detector wants it; the rest goes to stderr"),
      offline: onOff("Read containerd's database instead of asking it: for a runtime that is down"),
      containerdRoot: text("With --offline: containerd's root directory (default: found by itself)", "DIR"),
      containerdVersion: text("With --offline: the version that will be started, where it is known", "VERSION"),
    },
    aliases: nodeFlagAliases,
  },
  func: async function ({ offline, oneLine, ...flags }) {
    if (offline === true) {
      if (oneLine === true) throw new SettingsError("--one-line asks a runtime that is up: leave --offline out");
      const { runScanOffline } = await import("../scan-offline.ts");
      this.finish(await runScanOffline(flags, this.io));
      return;
    }
    const { runScan } = await import("../scan.ts");
    this.finish(await runScan({ ...flags, oneLine: oneLine === true }, this.io));
  },
});
