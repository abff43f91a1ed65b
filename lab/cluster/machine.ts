import { dirname } from "node:path";
import { cacheDir, checkoutDir } from "../cache.ts";
import { planCgroups } from "../cgroup.ts";
import type { CommandResult } from "../command.ts";
import { cgroupName, clearNodeDir, createNodeDir, sweepLeftovers } from "../node-dir.ts";
import { createDisk, writeDiskFile } from "../node-disk.ts";
import { type ExecOptions, execInNode } from "../node-exec.ts";
import { clearAtExit, forgetAtExit } from "../node-exit.ts";
import { nodePower } from "../node-power.ts";
import type { Tools } from "../tools.ts";

/** A lab machine without a container runtime: namespaces, disks and an init. */
export interface Machine {
  /** Everything of the machine is below this directory. */
  readonly dir: string;
  readonly initPid: number;
  livePath(inMachine: string): string;
  writeFile(inMachine: string, content: string, mode?: number): Promise<void>;
  exec(command: readonly string[], options?: ExecOptions): Promise<CommandResult>;
  check(command: readonly string[], options?: ExecOptions): Promise<string>;
  kill(pid: number, signal: "KILL" | "TERM"): Promise<void>;
  destroy(): Promise<void>;
}

export async function startMachine(tools: Tools, binDirs: readonly string[]): Promise<Machine> {
  sweepLeftovers();
  const dir = await createNodeDir();
  clearAtExit(dir);
  const hostname = `lab-${dir.id}`;
  const visible = [checkoutDir(), cacheDir(), dirname(process.execPath)];
  const power = nodePower(dir, {
    dir: dir.path,
    hostname,
    busybox: tools.busybox,
    cgroups: planCgroups(cgroupName(dir)),
    visible: visible.filter((path) => path !== undefined),
  });
  const exec = (command: readonly string[], options: ExecOptions = {}) =>
    execInNode(power.initPid, binDirs, command, options);
  const machine: Machine = {
    dir: dir.path,
    get initPid() {
      return power.initPid;
    },
    livePath: (inMachine) => power.livePath(inMachine),
    writeFile: (inMachine, content, mode) => writeDiskFile(dir.path, inMachine, content, mode),
    exec,
    check: async (command, options) => {
      const result = await exec(command, options);
      if (result.code === 0) return result.stdout;
      throw new Error(`${command.join(" ")} ended with code ${result.code}: ${result.stderr.trim()}`);
    },
    kill: async (pid, signal) => {
      await exec(["sh", "-c", `kill -${signal} ${pid}`]);
    },
    destroy: async () => {
      await power.cut();
      clearNodeDir(dir);
      forgetAtExit(dir);
    },
  };
  try {
    await createDisk(dir.path, hostname, tools);
    await power.on();
    return machine;
  } catch (error) {
    await machine.destroy();
    throw error;
  }
}
