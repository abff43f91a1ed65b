import type { CommandResult } from "../../lab/command.ts";
import type { LabNode } from "../../lab/node.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { until } from "../../lab/poll.ts";
import { readHistory } from "../../src/heal/journal/reader.ts";
import { AT_ONCE, unghostIn } from "./healed-node.ts";
import { UNGHOST } from "./unghost.ts";

const APPEARS_MS = 60_000;

/** A heal that runs in the node during the test. */
export interface RunningHeal {
  readonly ended: Promise<CommandResult>;
  hasEnded(): boolean;
  signal(signal: "INT" | "TERM" | "KILL"): Promise<void>;
}

export function startHeal(node: LabNode, flags: readonly string[] = AT_ONCE): RunningHeal {
  let ended = false;
  const result = unghostIn(node, ["heal", "--yes", ...flags]).finally(() => {
    ended = true;
  });
  return {
    ended: result,
    hasEnded: () => ended,
    signal: async (signal) => {
      const pid = await until("the heal is running, or has ended", APPEARS_MS, () => (ended ? -1 : pidOfHeal(node)));
      if (pid > 0) await node.exec(["kill", `-${signal}`, String(pid)]);
    },
  };
}

function pidOfHeal(node: LabNode): number | undefined {
  return processesOf(node).find(({ command }) => command[0] === UNGHOST && command[1] === "heal")?.pid;
}

/** Entries of the journal that were started and not ended. */
export async function openEntries(node: LabNode): Promise<readonly string[]> {
  const { records } = await readHistory(node.path("/var/lib/unghost/journal"));
  return records.filter(({ state }) => state === "open" || state === "undoing").map(({ id }) => id);
}
