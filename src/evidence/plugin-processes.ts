import type { PluginProcess } from "../node/types/runtime.ts";

/** A hung plugin is a tree of processes with the same environment: the oldest one represents it. */
export function oldestOfEachSandbox(plugins: readonly PluginProcess[], cniCommand: string): readonly PluginProcess[] {
  const oldest = new Map<string, PluginProcess>();
  for (const plugin of plugins) {
    if (plugin.cniCommand !== cniCommand) continue;
    const known = oldest.get(plugin.sandboxId);
    if (known === undefined || plugin.startedSecondsAfterBoot < known.startedSecondsAfterBoot) {
      oldest.set(plugin.sandboxId, plugin);
    }
  }
  return [...oldest.values()];
}
