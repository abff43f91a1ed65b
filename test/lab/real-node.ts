import { afterEach, test } from "vitest";
import { type LabNode, type NodeOptions, startNode } from "../../lab/node.ts";
import { type ContainerdVersion, containerdVersion } from "../../lab/runtimes.ts";
import { ensureContainerd, whyNoRealNode } from "../../lab/tools.ts";
import { expectWaitsSeen, watchVerdicts } from "../../lab/verdict-watch.ts";
import { UNGHOST } from "../e2e/unghost.ts";

/** Why the tests of the real node are skipped here; undefined if they run. */
export const NO_REAL_NODE = whyNoRealNode();
export const HANG_GUARD_MS = 600_000;
export const CALL = { timeoutMs: 60_000 } as const;

/** The two that differ most; `make e2e RUNTIME=1.7,2.2` runs others. */
const RUNTIMES = (process.env["UNGHOST_LAB_RUNTIME"] || "1.6,2.3").split(",").map(containerdVersion);
const whyNot = new Map<ContainerdVersion, string>();
for (const version of RUNTIMES) {
  const containerd = await ensureContainerd(version);
  if (!containerd.available) whyNot.set(version, containerd.reason);
}

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
export function eachRuntime(title: string, body: (runtime: ContainerdVersion) => Promise<void>): void {
  for (const version of RUNTIMES) {
    const missing = whyNot.has(version) ? `: skipped, ${whyNot.get(version)}` : "";
    test.skipIf(missing !== "")(`${title} (containerd ${version}${missing})`, () => body(version));
  }
}
