import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { BOOT_SCRIPT } from "./boot-script.ts";
import { type CgroupPart, leaveRootToNode } from "./cgroup.ts";
import { until } from "./poll.ts";
import { identify, killProcess, type ProcessIdentity } from "./process-identity.ts";

export interface BootPlan {
  readonly dir: string;
  readonly hostname: string;
  readonly busybox: string;
  readonly cgroups: readonly CgroupPart[];
  /** Directories of the machine that are mounted in the node, read-only and at the same path. */
  readonly visible: readonly string[];
  /** Another init than the lab's own. */
  readonly init?: Init;
}

export interface Init {
  /** Enters the namespaces and runs `$LAB_BOOT` there. */
  readonly launch: string;
  /** Reports `up <pid>` and becomes the init. */
  readonly boot: string;
  readonly env: Readonly<Record<string, string>>;
}

/** A running node. */
export interface Power {
  readonly init: ProcessIdentity;
  /** Kills the init, and settles when it and with it everything in the node is gone. */
  cut(): Promise<void>;
}

const BOOT_MS = 30_000;

/** Joins the node's cgroups first: the root of a cgroup namespace is the cgroup of its creator. */
const JOIN_CGROUPS = 'for group in $LAB_GROUPS; do echo 0 >"$group/cgroup.procs"; done';
const UNSHARE = "unshare --mount --pid --net --uts --ipc --cgroup $LAB_TIME --fork --kill-child";

const LAUNCH_SCRIPT = `
${JOIN_CGROUPS}
exec ${UNSHARE} "$LAB_BUSYBOX" sh -c "$LAB_BOOT"
`;

/**
 * For an init that does not watch its input: the launcher stays and ends the node when its own input ends, which
 * happens when the process that started it dies. It stays outside of the node's cgroups, which a power cut empties.
 */
export const WATCHING_LAUNCH_SCRIPT = `
exec 3<&0 </dev/null
( ${JOIN_CGROUPS}; exec ${UNSHARE} "$LAB_BUSYBOX" sh -c "$LAB_BOOT" ) &
node="$!"
( cat <&3 >/dev/null; kill -KILL "$node" ) 2>/dev/null &
exec 3<&-
wait "$node"
`;

/**
 * `launched` is called at once with the launcher: until the init has reported itself, killing the launcher ends the
 * boot.
 */
export async function boot(plan: BootPlan, launched: (launcher: ProcessIdentity) => void): Promise<Power> {
  const child = spawn("sh", ["-c", plan.init?.launch ?? LAUNCH_SCRIPT], {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    env: {
      PATH: process.env["PATH"],
      LAB_BOOT: plan.init?.boot ?? BOOT_SCRIPT,
      LAB_BUSYBOX: plan.busybox,
      LAB_DIR: plan.dir,
      LAB_HOSTNAME: plan.hostname,
      LAB_TIME: freshClock(),
      LAB_GROUPS: plan.cgroups.map((part) => part.path).join(" "),
      LAB_CGROUPS: plan.cgroups.map((part) => `${part.type} ${part.name || "."} ${part.options}`).join("\n"),
      LAB_VISIBLE: plan.visible.join("\n"),
      ...plan.init?.env,
    },
  });
  const launcher = child.pid === undefined ? undefined : identify(child.pid);
  if (launcher !== undefined) launched(launcher);
  const off = new Promise<void>((gone) => child.once("exit", () => gone()));
  const init = await reportedInit(child).catch(async (error: unknown) => {
    child.kill("SIGKILL");
    await off;
    throw error;
  });
  leaveRootToNode(plan.cgroups, init.pid);
  // A node must not keep its owner alive: it ends with it, when the pipe to its init closes.
  child.unref();
  for (const pipe of [child.stdin, child.stdout, child.stderr]) (pipe as Partial<Socket>).unref?.();
  return {
    init,
    cut: () => {
      child.ref();
      killProcess(init);
      return off;
    },
  };
}

/** The boot script reports its pid when the node is up. */
function reportedInit(child: ChildProcessWithoutNullStreams): Promise<ProcessIdentity> {
  return new Promise((up, failed) => {
    let errors = "";
    let output = "";
    const fail = (why: string) => {
      clearTimeout(timer);
      failed(new Error(`the lab node did not boot: ${why}. ${errors.trim()}`));
    };
    const timer = setTimeout(() => fail(`no answer within ${BOOT_MS} ms`), BOOT_MS);
    child.stderr.on("data", (chunk: Buffer) => {
      errors += chunk.toString();
    });
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      const match = /^up (\d+)\n/m.exec(output);
      if (match === null) return;
      clearTimeout(timer);
      const init = identify(Number(match[1]));
      if (init === undefined) fail("it died right afterwards");
      else up(init);
    });
    child.once("error", (error) => fail(error.message));
    child.once("close", (code) => fail(`its init ended with code ${code}`));
  });
}

/** Uptime is the kernel's; in its own time namespace a node counts from its own boot, like a machine. */
function freshClock(): string {
  if (!existsSync("/proc/self/ns/time")) return "";
  return `--time --boottime -${Math.floor(machineUptime())}`;
}

/**
 * A node's clock can only start at a whole second, which is already over in part. A boot after the next one is later than
 * all that happened until now.
 */
export async function nextWholeSecond(): Promise<void> {
  const second = Math.floor(machineUptime());
  await until("the second is over", BOOT_MS, () => Math.floor(machineUptime()) > second || undefined);
}

function machineUptime(): number {
  return Number.parseFloat(readFileSync("/proc/uptime", "utf8"));
}
