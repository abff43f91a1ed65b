import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import { until } from "../../lab/poll.ts";
import { UNGHOST } from "./unghost.ts";

/** Only a hang guard. */
const APPEARS_MS = 120_000;

export interface AgentLine {
  readonly msg: string;
  readonly level: string;
  readonly finding?: string;
  readonly outcome?: string;
  readonly reason?: string;
  readonly [field: string]: unknown;
}

/** The built agent, running beside the test. */
export interface RunningAgent {
  readonly process: ChildProcess;
  readonly lines: readonly AgentLine[];
  /** Waits until such a line was logged. */
  logged(msg: string, isIt?: (line: AgentLine) => boolean): Promise<AgentLine>;
  signal(name: NodeJS.Signals): void;
  /** Stops it like a service manager; returns its exit code. */
  stop(): Promise<number | null>;
  /** Its stderr. */
  stderr(): string;
}

/** Without a cluster, a port, or a periodic scan that could find by chance what a trigger should have. */
export const BY_TRIGGERS_ALONE = ["--no-kube", "--listen", "", "--scan-every", "24h"] as const;

export function startAgent(args: readonly string[], env: Readonly<Record<string, string>> = {}): RunningAgent {
  const child = spawn(UNGHOST, ["agent", ...args], {
    env: { PATH: "/usr/bin:/bin", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines: AgentLine[] = [];
  let errors = "";
  createInterface(child.stdout).on("line", (line) => lines.push(JSON.parse(line) as AgentLine));
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const ended = once(child, "exit") as Promise<[number | null]>;
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return {
    process: child,
    lines,
    logged: (msg, isIt = () => true) =>
      until(`the agent logs "${msg}"`, APPEARS_MS, () => {
        const found = lines.find((line) => line.msg === msg && isIt(line));
        if (found === undefined && child.exitCode !== null) throw new Error(`the agent has ended: ${errors}`);
        return found;
      }),
    signal: (name) => child.kill(name),
    stop: async () => {
      child.kill("SIGTERM");
      const [code] = await ended;
      return code;
    },
    stderr: () => errors,
  };
}

/** The findings that it logged as healed. */
export function healedBy({ lines }: Pick<RunningAgent, "lines">): readonly string[] {
  return lines.filter(({ msg }) => msg === "ghost healed").map(({ finding }) => finding ?? "");
}
