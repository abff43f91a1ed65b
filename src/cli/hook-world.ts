import { runCommand, systemdRuns } from "../boot/install/service-manager.ts";
import { askYesNo } from "./ask.ts";
import type { HookOptions } from "./hook-options.ts";
import type { Io } from "./io.ts";
import type { NodeSettings } from "./settings.ts";

/** install and uninstall in the real world. */
export function hookOptions(
  { hostRoot, stateDir }: Pick<NodeSettings, "hostRoot" | "stateDir">,
  asked: { readonly force?: boolean; readonly dryRun?: boolean; readonly yes?: boolean },
  io: Io,
): HookOptions {
  return {
    hostRoot,
    stateDir,
    force: asked.force ?? false,
    dryRun: asked.dryRun ?? false,
    yes: asked.yes ?? false,
    confirm: (question) => askYesNo(question, io),
    systemdRuns: systemdRuns(),
    runCommand,
  };
}
