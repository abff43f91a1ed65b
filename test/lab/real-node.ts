import { afterEach, test } from "vitest";
import { type LabNode, type NodeOptions, startNode } from "../../lab/node.ts";
import { ensureContainerd2, whyNoRealNode } from "../../lab/tools.ts";
import { expectWaitsSeen, watchVerdicts } from "../../lab/verdict-watch.ts";
import { UNGHOST } from "../e2e/unghost.ts";

/** Why the tests of the real node are skipped here; undefined if they run. */
export const NO_REAL_NODE = whyNoRealNode();
export const HANG_GUARD_MS = 600_000;
export const CALL = { timeoutMs: 60_000 } as const;

const containerd2 = NO_REAL_NODE === undefined ? await ensureContainerd2() : undefined;
const nodes: LabNode[] = [];
const players: (() => Promise<void>)[] = [];

afterEach(async () => {
  await Promise.all(players.splice(0).map((end) => end()));
  const ended = nodes.splice(0);
  try {
    for (const node of ended) await expectWaitsSeen(node, UNGHOST);
  } finally {
    for (const node of ended) await node.destroy();
  }
});

/** A node that is destroyed after the test. No scan or heal on it may report healthy while pods wait. */
export async function start(options: NodeOptions = {}): Promise<LabNode> {
  const node = await startNode({ ...options, watch: watchVerdicts(UNGHOST) });
  nodes.push(node);
  return node;
}

/** Runs a background actor on a node until the test ends; it is stopped before the node is destroyed. */
export function play(part: (stop: AbortSignal) => Promise<void>): void {
  const stop = new AbortController();
  const playing = part(stop.signal);
  players.push(() => {
    stop.abort();
    return playing;
  });
}

/** One test for each containerd; the title contains the version, and the reason if it is not available. */
export function eachRuntime(title: string, body: (runtime: "1.6" | "2.3") => Promise<void>): void {
  test(`${title} (containerd 1.6)`, () => body("1.6"));
  const missing = containerd2?.available === false ? `: skipped, ${containerd2.reason}` : "";
  test.skipIf(missing !== "")(`${title} (containerd 2.3${missing})`, () => body("2.3"));
}
