import { setTimeout as sleep } from "node:timers/promises";
import { settleEarlierRuns } from "../heal/execution/session.ts";
import type { Recovery } from "../heal/journal/recover.ts";
import { printable } from "../host/printable.ts";
import type { Io } from "./io.ts";
import type { NodeSettings } from "./node-settings.ts";
import { sessionOptions } from "./state.ts";

/** True when something that a killed run left open was settled, and the node is worth another look. */
export async function settledEarlierRuns(settings: NodeSettings, io: Io): Promise<boolean> {
  const settled = await settleEarlierRuns({ ...sessionOptions(settings), sleep });
  if (!settled.ok) {
    io.stderr(`What an earlier run left open stays so: ${settled.refusal.message} ${settled.refusal.next}\n`);
    return false;
  }
  tellRecoveries(settled.value, io);
  return settled.value.some(({ how }) => how !== "unsettled");
}

export function tellRecoveries(recoveries: readonly Recovery[], io: Io): void {
  for (const { id, kind, how, detail } of recoveries) {
    io.stderr(`An earlier run was interrupted at ${kind} (${id}): ${how}. ${printable(detail)}\n`);
  }
}
