import { dirname } from "node:path";
import { ensureCrictl } from "../lab/crictl.ts";
import { type LabNode, startNode } from "../lab/node.ts";
import { type PodSpec, runPods } from "../lab/pods.ts";
import { CONTAINERD_SOCKET } from "../lab/runtime-config.ts";
import type { RuntimeVersion } from "../lab/runtimes.ts";
import { whyNoRealNode } from "../lab/tools.ts";
import { interleaved, type Run, type Summary } from "./measure.ts";
import type { Result } from "./result.ts";

const GHOSTS = 60;
const ROUNDS = 5;
const MAX_TIMES_CRICTL = 1.25;
const GUARD_MS = 300_000;

export interface HealBench {
  readonly ghosts?: number;
  readonly rounds?: number;
  /** Values of --concurrency to try besides the default. */
  readonly concurrencies?: readonly number[];
  readonly runtime?: RuntimeVersion;
  /** Names of the containers of each ghost; their logs are saved, which crictl does not do. */
  readonly containers?: readonly string[];
}

/**
 * The cost of healing a node after a power cut, compared with crictl, which gets the ids to remove and checks nothing.
 */
export async function benchHeal(
  unghost: string,
  { ghosts = GHOSTS, rounds = ROUNDS, concurrencies = [], runtime = "1.6", containers = [] }: HealBench = {},
): Promise<Result> {
  const holding = containers.length === 0 ? "" : ` with ${containers.length} container each`;
  const title = `heal of ${ghosts} ghosts${holding} on a real node, containerd ${runtime}`;
  const why = whyNoRealNode();
  if (why !== undefined) return { title, rows: [], bars: [], notes: [`not run: ${why}`] };
  const built = await ensureCrictl();
  const crictl = typeof built === "string" ? built : undefined;
  const visible = [unghost, ...(crictl === undefined ? [] : [crictl])].map((path) => dirname(path));
  const node = await startNode({ runtime, visible });
  try {
    const spec = { name: "ghost", containers: containers.map((name) => ({ name })) };
    const healed = (commandFor: (ids: readonly string[]) => string[]) => measured(node, ghosts, spec, commandFor);
    const heal = [unghost, "heal", "--yes", "--no-kube", "--min-age", "0s"];
    const commands = new Map<string, () => Promise<Run>>([["unghost heal", () => healed(() => heal)]]);
    for (const limit of concurrencies) {
      const limited = [...heal, "--concurrency", String(limit)];
      commands.set(`unghost heal --concurrency ${limit}`, () => healed(() => limited));
    }
    if (crictl !== undefined) {
      const rmp = [crictl, "--runtime-endpoint", `unix://${CONTAINERD_SOCKET}`, "--timeout", "130s", "rmp", "--force"];
      commands.set("crictl rmp --force", () => healed((ids) => [...rmp, ...ids]));
    }
    const summaries = await interleaved(commands, rounds);
    const rows = [...summaries].map(([name, summary]) => ({ name, summary }));
    return { title, rows, ...compared(summaries) };
  } finally {
    await node.destroy();
  }
}

/** Creates the ghosts, and measures only their removal. */
async function measured(
  node: LabNode,
  ghosts: number,
  spec: Partial<PodSpec>,
  commandFor: (ids: readonly string[]) => string[],
): Promise<Run> {
  const pods = await runPods(node, ghosts, spec);
  await node.powerCut();
  await node.powerOn();
  const command = commandFor(pods.map(({ sandboxId }) => sandboxId));
  const startedAt = performance.now();
  const { code, stderr } = await node.exec(command, { timeoutMs: GUARD_MS });
  const ms = performance.now() - startedAt;
  const left = await node.cri.listPodSandbox(undefined, { timeoutMs: GUARD_MS });
  if (code !== 0 || left.length > 0) {
    throw new Error(`${command.slice(0, 6).join(" ")} ended with ${code} and left ${left.length}: ${stderr}`);
  }
  return { ms, code, peakMb: 0 };
}

function compared(summaries: ReadonlyMap<string, Summary>): Pick<Result, "bars" | "notes"> {
  const heal = summaries.get("unghost heal");
  const crictl = summaries.get("crictl rmp --force");
  if (heal === undefined || crictl === undefined) {
    return { bars: [], notes: ["no crictl and no go to build it: nothing to compare with"] };
  }
  const value = heal.minMs / crictl.minMs;
  return { bars: [{ name: "heal / crictl rmp --force, fastest", value, most: MAX_TIMES_CRICTL }], notes: [] };
}
