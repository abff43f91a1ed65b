import { type BootPlan, boot, nextWholeSecond, type Power } from "./boot.ts";
import { createCgroups, removeCgroups } from "./cgroup.ts";
import { type NodeDir, recordCgroups, recordInit } from "./node-dir.ts";
import { newBootId } from "./node-disk.ts";
import { until } from "./poll.ts";

/** The node's power supply: on or off. Only the disks survive from one boot to the next. */
export interface NodePower {
  readonly powered: boolean;
  readonly initPid: number;
  livePath(inNode: string): string;
  on(): Promise<void>;
  cut(): Promise<void>;
}

const SETTLE_MS = 60_000;

export function nodePower(dir: NodeDir, plan: BootPlan): NodePower {
  let power: Power | undefined;
  let wasOn = false;

  function initPid(): number {
    if (power === undefined) throw new Error(`lab node ${dir.id} has no power: call powerOn() first`);
    return power.init.pid;
  }

  return {
    get powered() {
      return power !== undefined;
    },
    get initPid() {
      return initPid();
    },
    livePath: (inNode) => `/proc/${initPid()}/root${inNode}`,
    on: async () => {
      if (power !== undefined) return;
      if (wasOn) await nextWholeSecond();
      wasOn = true;
      newBootId(dir.path);
      recordCgroups(dir, plan.cgroups);
      createCgroups(plan.cgroups);
      power = await boot(plan, (launcher) => recordInit(dir, launcher));
      recordInit(dir, power.init);
    },
    cut: async () => {
      if (power === undefined) return;
      await power.cut();
      power = undefined;
      const what = `lab node ${dir.id} has no process left after the power cut`;
      await until(what, SETTLE_MS, () => removeCgroups(plan.cgroups) || undefined);
    },
  };
}
