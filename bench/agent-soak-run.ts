import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { seeded } from "../lab/chaos/random.ts";
import { until } from "../lab/poll.ts";
import { type SimulatedNode, startSimulatedNode } from "../lab/simulated/node.ts";
import { ZERO_TIME } from "../src/node/types/runtime.ts";
import { type CriClient, openCri } from "../src/runtime/cri.ts";
import { RuntimeError } from "../src/runtime/errors.ts";
import { ContainerState, PodSandboxState } from "../src/runtime/gen/runtime/v1/cri.ts";
import { injectFault, liftFaults, type SoakStage } from "./agent-faults.ts";

export interface SoakOptions {
  readonly unghost: string;
  readonly faults: number;
  readonly seed: number;
  readonly onRound?: (round: SoakRound) => void;
}

export interface SoakRound {
  readonly faults: number;
  readonly rssMb: number;
}

export interface SoakResult {
  readonly complaints: readonly string[];
  readonly rounds: readonly SoakRound[];
}

/** A version that fails on damaged caches, like the simulated one does for any version. */
const DAMAGED_CACHES_FAIL = "1.6.20";
/** After this many concurrent faults the node must become healthy again. */
const FAULTS_A_ROUND = 20;
const COMPANY = 20;
const WELL_MS = 60_000;
/** Of a container that was running at the power cut. */
const LOST_EXIT_CODE = 255;
const CALL = { timeoutMs: 10_000 };

/** Short ages and large budgets, because a run takes minutes. */
const CONFIG = `agent:
  defaults: { minAge: 0s, attempts: 100, coolDown: 1s }
  cap: 10000
`;

/** Random faults against an agent on a simulated node, in rounds. */
export async function soak({ unghost, faults, seed, onRound }: SoakOptions): Promise<SoakResult> {
  const node = await startSimulatedNode({ version: DAMAGED_CACHES_FAIL });
  const cri = openCri(node.socket);
  const agent = startAgent(unghost, node);
  const stage: SoakStage = { node, cri, random: seeded(seed), refusals: new Map(), hangs: new Set() };
  const complaints: string[] = [];
  const rounds: SoakRound[] = [];
  try {
    for (let done = 0; done < faults && agent.isAlive(); ) {
      node.addSandboxes(COMPANY - (await readyPods(cri)), { state: "ready" });
      const most = Math.min(FAULTS_A_ROUND, faults - done);
      for (let count = 0; count < most; count++) await injectFault(stage);
      done += most;
      liftFaults(stage);
      await untilWell(stage).catch((error: unknown) => complaints.push(`after ${done} faults: ${String(error)}`));
      await removeStopped(cri);
      const round = { faults: done, rssMb: agent.rssMb() };
      rounds.push(round);
      onRound?.(round);
    }
    complaints.push(...(await agent.end()));
  } finally {
    agent.kill();
    cri.close();
    await node.close();
  }
  return { complaints, rounds };
}

async function untilWell(stage: SoakStage): Promise<void> {
  let left: readonly string[] = [];
  await until("every ghost is healed", WELL_MS, async () => {
    try {
      left = await leftOn(stage);
      return left.length === 0 || undefined;
    } catch (error) {
      // The agent removed it meanwhile.
      if (error instanceof RuntimeError) return undefined;
      throw error;
    }
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}; left: ${left.join(", ")}`, { cause: error });
  });
}

/**
 * What must be gone: incomplete sandboxes, those that died with the machine, and networks of pods that do not run. A
 * stopped pod is kept for its logs.
 */
async function leftOn({ cri, node }: SoakStage): Promise<readonly string[]> {
  const sandboxes = await cri.listPodSandbox(undefined, CALL);
  const exited = await cri.listContainers({ state: { state: ContainerState.CONTAINER_EXITED } }, CALL);
  const statuses = await Promise.all(exited.map(({ id }) => cri.containerStatus(id, CALL)));
  const lost = exited.filter((_, index) => statuses[index]?.status?.exitCode === LOST_EXIT_CODE);
  const halfMade = sandboxes.filter(({ createdAt }) => createdAt === ZERO_TIME);
  const running = new Set(sandboxes.filter(({ state }) => state === PodSandboxState.SANDBOX_READY).map(({ id }) => id));
  const files = readdirSync(join(node.root, "var/lib/cni/results"), { withFileTypes: true });
  const idle = files.filter((file) => file.isFile() && !running.has(/[0-9a-f]{64}/.exec(file.name)?.[0] ?? ""));
  return [
    ...lost.map(({ podSandboxId }) => podSandboxId),
    ...halfMade.map(({ id }) => id),
    ...idle.map(({ name }) => name),
  ];
}

/** Kubelet's part: removes kept sandboxes, or the node would fill up. */
async function removeStopped(cri: CriClient): Promise<void> {
  const stopped = await cri.listPodSandbox({ state: { state: PodSandboxState.SANDBOX_NOTREADY } }, CALL);
  for (const { id } of stopped) await cri.removePodSandbox(id, CALL);
}

async function readyPods(cri: CriClient): Promise<number> {
  const sandboxes = await until("the runtime answers", WELL_MS, () =>
    cri.listPodSandbox({ state: { state: PodSandboxState.SANDBOX_READY } }, CALL).catch(() => undefined),
  );
  return Math.min(COMPANY, sandboxes.length);
}

interface SoakedAgent {
  rssMb(): number;
  isAlive(): boolean;
  /** Stops it, and returns its problems. */
  end(): Promise<readonly string[]>;
  kill(): void;
}

function startAgent(unghost: string, { root }: SimulatedNode): SoakedAgent {
  const config = join(root, "soak.yaml");
  writeFileSync(config, CONFIG);
  const where = ["--host-root", root, "--config", config];
  const how = ["--no-kube", "--listen", "127.0.0.1:0", "--scan-every", "200ms", "--min-age", "0s", "--timeout", "2s"];
  const child = spawn(unghost, ["agent", ...where, ...how], {
    env: { PATH: "/usr/bin:/bin" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stderr = "";
  const failures: string[] = [];
  createInterface(child.stdout).on("line", (line) => {
    if (line.includes('"msg":"scan failed"') || line.includes("not followed any more")) failures.push(line);
  });
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const ended = once(child, "exit") as Promise<[number | null, string | null]>;
  return {
    rssMb: () => rssOf(child),
    isAlive: () => child.exitCode === null && child.signalCode === null,
    end: async () => {
      child.kill("SIGTERM");
      const [code, signal] = await ended;
      const errors = stderr.trim();
      return [
        ...(code === 0 ? [] : [`the agent ended with ${code ?? signal}`]),
        ...(errors === "" ? [] : [`the agent wrote to stderr: ${errors}`]),
        ...failures,
      ];
    },
    kill: () => child.kill("SIGKILL"),
  };
}

function rssOf({ pid }: ChildProcess): number {
  try {
    const [, kilobytes = "0"] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kilobytes) / 1024;
  } catch {
    // It has ended, which is reported separately.
    return 0;
  }
}
