import { valueOr } from "../host/source.ts";
import type { CniDaemon, PluginProcess } from "../snapshot/types.ts";
import type { NodeView } from "./view.ts";

/** A daemon and the plugin calls that wait for it. */
export interface DaemonCalls {
  readonly daemon: CniDaemon;
  /** The innermost plugin of each call, oldest first: a multus shim whose delegate hangs waits for the delegate's daemon. */
  readonly calls: readonly PluginProcess[];
}

/** A call that started before the daemon did waits for an earlier one: ending it helps, and the daemon is not to blame. */
export function daemonCalls(view: NodeView): readonly DaemonCalls[] {
  const { cniDaemons, processes } = view.snapshot;
  const daemons = cniDaemons === undefined ? [] : valueOr(cniDaemons, []);
  if (daemons.length === 0) return [];
  const bySandbox = Map.groupBy(valueOr(processes, undefined)?.plugins ?? [], ({ sandboxId }) => sandboxId);
  const innermost = [...bySandbox.values()].flatMap((tree) => innermostOf(tree, daemons));
  return daemons.map((daemon) => ({
    daemon,
    calls: innermost
      .filter((plugin) => dials(plugin, daemon) && !isOlder(plugin, daemon))
      .toSorted((one, other) => one.startedSecondsAfterBoot - other.startedSecondsAfterBoot),
  }));
}

function innermostOf(tree: readonly PluginProcess[], daemons: readonly CniDaemon[]): readonly PluginProcess[] {
  const dialing = tree.filter((plugin) => daemons.some((daemon) => dials(plugin, daemon)));
  const last = dialing.toSorted((one, other) => other.startedSecondsAfterBoot - one.startedSecondsAfterBoot)[0];
  return last === undefined ? [] : [last];
}

/** Its program may be run by an interpreter: then it is the second word. */
function dials({ command }: PluginProcess, { plugins }: CniDaemon): boolean {
  const words = command.split(" ").slice(0, 2);
  return words.some((word) => plugins.includes(word.slice(word.lastIndexOf("/") + 1)));
}

function isOlder(plugin: PluginProcess, { listener }: CniDaemon): boolean {
  return listener !== undefined && plugin.startedSecondsAfterBoot < listener.startedSecondsAfterBoot;
}
