import { existsSync, readFileSync } from "node:fs";
import { type CriClient, openCri } from "../src/runtime/cri.ts";
import { until } from "./poll.ts";
import { CONTAINERD_CONFIG, CONTAINERD_LOG, CONTAINERD_SOCKET } from "./runtime-config.ts";

/** What containerd needs to know of the node it runs in. */
export interface RuntimeHost {
  livePath(inNode: string): string;
  check(command: readonly string[]): Promise<string>;
  kill(pid: number, signal: "KILL" | "TERM"): Promise<void>;
}

/** The node's containerd process and the client to it. */
export interface NodeRuntime {
  readonly cri: CriClient;
  start(): Promise<void>;
  end(signal: "KILL" | "TERM"): Promise<void>;
  closeClient(): void;
}

const WAIT_MS = 60_000;
const PID_FILE = "/run/containerd/lab.pid";

/** exec enters the node's namespaces and leaves the process in the caller's cgroups; a service belongs into the node's. */
const JOIN_CGROUPS = `
  if [ -e /sys/fs/cgroup/init ]; then echo 0 >/sys/fs/cgroup/init/cgroup.procs
  else for group in /sys/fs/cgroup/*/cgroup.procs; do echo 0 >"$group"; done; fi`;

const START_SCRIPT = `
mkdir -p /run/containerd
rm -f ${PID_FILE}
(
  ${JOIN_CGROUPS}
  exec setsid sh -c 'echo $$ >${PID_FILE}; exec containerd --config ${CONTAINERD_CONFIG}'
) </dev/null >>${CONTAINERD_LOG} 2>&1 &
`;

export function nodeRuntime(host: RuntimeHost): NodeRuntime {
  let client: CriClient | undefined;

  function cri(): CriClient {
    client ??= openCri(host.livePath(CONTAINERD_SOCKET));
    return client;
  }

  function closeClient(): void {
    client?.close();
    client = undefined;
  }

  /** As the node counts; undefined when containerd does not run. */
  function pid(): number | undefined {
    const file = host.livePath(PID_FILE);
    if (!existsSync(file)) return undefined;
    const text = readFileSync(file, "utf8").trim();
    return text !== "" && existsSync(host.livePath(`/proc/${text}`)) ? Number(text) : undefined;
  }

  async function answers(): Promise<true | undefined> {
    const begun = existsSync(host.livePath(PID_FILE)) && readFileSync(host.livePath(PID_FILE), "utf8") !== "";
    if (begun && pid() === undefined) throw new Error(`the lab node's containerd ended at once: ${logTail()}`);
    if (!begun || !existsSync(host.livePath(CONTAINERD_SOCKET))) return undefined;
    // A client of its own: an open connection would keep the owner's process from ending.
    const probe = openCri(host.livePath(CONTAINERD_SOCKET));
    const answer = probe.version({ timeoutMs: 5000 }).then(
      () => true as const,
      // Not listening yet, or a socket that an earlier containerd left behind: asked again.
      () => undefined,
    );
    return answer.finally(() => probe.close());
  }

  function logTail(): string {
    return readFileSync(host.livePath(CONTAINERD_LOG), "utf8").trim().split("\n").slice(-5).join("\n");
  }

  return {
    get cri() {
      return cri();
    },
    closeClient,
    start: async () => {
      if (pid() !== undefined) return;
      await host.check(["sh", "-c", START_SCRIPT]);
      await until("the lab node's containerd answers", WAIT_MS, answers);
    },
    end: async (signal) => {
      const running = pid();
      closeClient();
      if (running === undefined) return;
      await host.kill(running, signal);
      await until(`containerd is gone after SIG${signal}`, WAIT_MS, () => pid() === undefined || undefined);
    },
  };
}
