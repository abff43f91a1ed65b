import { existsSync, readFileSync } from "node:fs";
import { until } from "./poll.ts";

/** The machine of a service. */
export interface ServiceHost {
  livePath(inNode: string): string;
  check(command: readonly string[]): Promise<string>;
  kill(pid: number, signal: "KILL" | "TERM"): Promise<void>;
}

/** A process that runs in a lab machine until it is stopped or the power is cut. */
export interface Service {
  readonly name: string;
  /** In the machine's pid namespace; undefined if the process does not run. */
  readonly pid: number | undefined;
  start(): Promise<void>;
  end(signal: "KILL" | "TERM"): Promise<void>;
  /** The last lines of its log. */
  logTail(): string;
}

const WAIT_MS = 120_000;

/**
 * exec enters a machine's namespaces and leaves the process in the caller's cgroups; a service belongs into the
 * machine's.
 */
const START_SCRIPT = `
pid_file="$1" log="$2"; shift 2
rm -f "$pid_file"
(
  if [ -e /sys/fs/cgroup/init ]; then echo 0 >/sys/fs/cgroup/init/cgroup.procs
  else for group in /sys/fs/cgroup/*/cgroup.procs; do echo 0 >"$group"; done; fi
  exec setsid sh -c 'echo $$ >"$0"; exec "$@"' "$pid_file" "$@"
) </dev/null >>"$log" 2>&1 &
`;

export function service(host: ServiceHost, name: string, log: string, command: readonly string[]): Service {
  const pidFile = `/run/lab-${name}.pid`;

  function recorded(): string {
    const file = host.livePath(pidFile);
    return existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  }

  function pid(): number | undefined {
    const text = recorded();
    return text !== "" && isRunning(host, text) ? Number(text) : undefined;
  }

  return {
    name,
    get pid() {
      return pid();
    },
    start: async () => {
      if (pid() !== undefined) return;
      await host.check(["sh", "-c", START_SCRIPT, "sh", pidFile, log, ...command]);
      await until(`${name} is started`, WAIT_MS, () => (recorded() === "" ? undefined : true));
    },
    end: async (signal) => {
      const running = pid();
      if (running === undefined) return;
      await host.kill(running, signal);
      await until(`${name} is gone after SIG${signal}`, WAIT_MS, () => pid() === undefined || undefined);
    },
    logTail: () => readFileSync(host.livePath(log), "utf8").trim().split("\n").slice(-10).join("\n"),
  };
}

/** A zombie still has its entry in /proc. */
function isRunning(host: ServiceHost, pid: string): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(host.livePath(`/proc/${pid}/status`), "utf8"));
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
}

/** Waits until a service answers, and fails at once if it has ended. */
export function answering(running: Service, probe: () => Promise<true | undefined>): Promise<true> {
  return until(`${running.name} answers`, WAIT_MS, () => {
    if (running.pid === undefined) throw new Error(`${running.name} ended right after its start: ${running.logTail()}`);
    return probe();
  });
}
