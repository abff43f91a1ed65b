import { dirname, resolve } from "node:path";
import { ensureCrictl } from "../lab/crictl.ts";
import { type LabNode, startNode } from "../lab/node.ts";
import { runPods } from "../lab/pods.ts";
import { CONTAINERD_SOCKET } from "../lab/runtime-config.ts";
import { whyNoRealNode } from "../lab/tools.ts";
import type { Summary } from "./measure.ts";
import type { Bar, Result } from "./result.ts";

const EMPTY_ROUNDS = 40;
const MAX_TIMES_PODS = 3;
const MAX_EMPTY_MS = 100;

const PODS = 40;
const DEAD = 20;
const PODS_ROUNDS = 15;
const MAX_TIMES_ALL = 0.25;

const ENDPOINT = ["--runtime-endpoint", `unix://${CONTAINERD_SOCKET}`];

type Commands = Readonly<Record<string, readonly string[]>>;
type Summaries = Readonly<Record<string, Summary>>;

/** The cost of a scan of a real node without pods, compared with one crictl command, which only lists. */
export function benchEmptyNode(unghost: string): Promise<Result> {
  return benchScan(
    "scan of an empty real node, process start to exit",
    async (node, crictl) => {
      const summaries = await measuredIn(node, EMPTY_ROUNDS, {
        "unghost scan": scanCommand(unghost),
        "unghost --version": [unghost, "--version"],
        "crictl pods": [crictl, ...ENDPOINT, "pods"],
      });
      return {
        summaries,
        bars: [
          ratio(summaries, "unghost scan", "crictl pods", MAX_TIMES_PODS),
          {
            name: "scan, fastest, ms",
            value: summaries["unghost scan"]?.minMs ?? Number.POSITIVE_INFINITY,
            most: MAX_EMPTY_MS,
          },
        ],
      };
    },
    [unghost],
  );
}

/**
 * The cost of a scan of a real node after a power cut, compared with the crictl commands that return the
 * same facts: all sandboxes, all containers, and each sandbox that is not ready.
 */
export function benchHalfDeadNode(unghost: string): Promise<Result> {
  return benchScan(
    `scan of a real node with ${PODS} pods, ${DEAD} of them dead`,
    async (node, crictl) => {
      const containers = [{ name: "main" }];
      const dead = await runPods(node, DEAD, { name: "dead", containers });
      await node.powerCut();
      await node.powerOn();
      await runPods(node, PODS - DEAD, { name: "alive" });
      const cri = [crictl, ...ENDPOINT].join(" ");
      const inspect = dead.map(({ sandboxId }) => `${cri} inspectp ${sandboxId}`);
      const all = "crictl pods, ps -a, inspectp of each dead one";
      const summaries = await measuredIn(node, PODS_ROUNDS, {
        "unghost scan": scanCommand(unghost),
        [all]: ["/bin/sh", "-ec", [`${cri} pods`, `${cri} ps -a`, ...inspect].join("\n")],
      });
      return { summaries, bars: [ratio(summaries, "unghost scan", all, MAX_TIMES_ALL)] };
    },
    [unghost],
  );
}

interface Compared {
  readonly summaries: Summaries;
  readonly bars: readonly Bar[];
}

async function benchScan(
  title: string,
  compare: (node: LabNode, crictl: string) => Promise<Compared>,
  programs: readonly string[],
): Promise<Result> {
  const crictl = await ensureCrictl();
  const why = whyNoRealNode() ?? (typeof crictl === "string" ? undefined : crictl.reason);
  if (why !== undefined || typeof crictl !== "string") {
    return { title, rows: [], bars: [], notes: [`not run: ${why}`] };
  }
  const node = await startNode({ visible: [...programs, crictl].map((path) => dirname(path)) });
  try {
    const { summaries, bars } = await compare(node, crictl);
    return { title, rows: Object.entries(summaries).map(([name, summary]) => ({ name, summary })), bars, notes: [] };
  } finally {
    await node.destroy();
  }
}

function scanCommand(unghost: string): readonly string[] {
  return [unghost, "scan", "--no-kube", ...ENDPOINT];
}

export async function measuredIn(node: LabNode, rounds: number, commands: Commands): Promise<Summaries> {
  const inside = resolve(import.meta.dirname, "inside.ts");
  return JSON.parse(
    await node.check([process.execPath, inside, String(rounds), JSON.stringify(commands)]),
  ) as Summaries;
}

/** Compares the fastest runs, which were disturbed least. */
function ratio(summaries: Summaries, one: string, other: string, most: number): Bar {
  const value = (summaries[one]?.minMs ?? Number.POSITIVE_INFINITY) / (summaries[other]?.minMs ?? 0);
  return { name: `${one} / ${other}, fastest`, value, most };
}
