import { type LabNode, startNode } from "../node.ts";
import type { RuntimeVersion } from "../runtimes.ts";
import { watchVerdicts } from "../verdict-watch.ts";
import { seeded } from "./random.ts";
import { type Arena, chaosRound, type RoundResult } from "./round.ts";

export interface ChaosOptions {
  readonly unghost: string;
  readonly rounds: number;
  readonly seed: number;
  /** Used in turns, with a new node every few rounds. */
  readonly runtimes: readonly RuntimeVersion[];
  /** More directories of the machine that the node must see. */
  readonly visible?: readonly string[];
  readonly onRound?: (round: number, result: RoundResult) => void;
}

const ROUNDS_PER_NODE = 10;

/** Random faults in rounds; returns every violation with the round's story. */
export async function runChaos(options: ChaosOptions): Promise<readonly string[]> {
  const random = seeded(options.seed);
  const complaints: string[] = [];
  let node: LabNode | undefined;
  let arena: Arena | undefined;
  try {
    for (let round = 0; round < options.rounds; round++) {
      if (node === undefined || arena === undefined || round % ROUNDS_PER_NODE === 0) {
        await node?.destroy();
        const runtime = options.runtimes[Math.floor(round / ROUNDS_PER_NODE) % options.runtimes.length] ?? "1.6";
        const watch = watchVerdicts(options.unghost);
        node = await startNode({ runtime, visible: options.visible ?? [], watch });
        arena = { node, unghost: options.unghost, random, finished: [], names: 0 };
      }
      const result = await chaosRound(arena);
      options.onRound?.(round, result);
      complaints.push(...result.complaints.map((one) => `round ${round}: ${one}\n  ${result.story.join("\n  ")}`));
    }
  } finally {
    await node?.destroy();
  }
  return complaints;
}
