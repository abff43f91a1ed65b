import { afterAll, beforeAll, expect, test } from "vitest";
import { leakedLease } from "../../lab/faults/host-local.ts";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { finishedPod, runPod, runPods } from "../../lab/pods.ts";
import { onNode, openTerminal, type Terminal } from "../../lab/terminal.ts";
import { UNGHOST } from "../e2e/unghost.ts";
import { NO_REAL_NODE, start } from "../lab/real-node.ts";
import { inOrder, normalised } from "./normalise.ts";

const WIDTHS = [60, 80, 200];
const containers = [{ name: "main" }];

let terminal: Terminal;
beforeAll(async () => {
  terminal = await openTerminal();
});
afterAll(() => terminal.close());

/** Ghosts of two classes, a leaked address, and one pod that has finished. */
async function breakNode(node: LabNode, ghosts: number): Promise<void> {
  const web = await runPods(node, ghosts - 2, { name: "web", namespace: "shop", containers });
  await runPod(node, { name: "db-0", namespace: "shop", containers });
  await finishedPod(node, { name: "migrate-1", namespace: "shop" });
  await node.powerCut();
  const [first] = web;
  if (first !== undefined) await emptyResultCache(node, first);
  await node.powerOn();
  await leakedLease(node);
}

test.skipIf(NO_REAL_NODE !== undefined).each([3, 40])(
  "what an operator sees on a node with %i ghosts",
  async (ghosts) => {
    const node = await start();
    for (const columns of WIDTHS) {
      await breakNode(node, ghosts);
      const env = {
        PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
        UNGHOST_NODE: "edge-7",
        UNGHOST_NO_KUBE: "true",
        UNGHOST_MIN_AGE: "0s",
        // In order, whichever ends first; and each width has a journal of its own.
        UNGHOST_CONCURRENCY: "1",
        UNGHOST_STATE_DIR: `/var/lib/unghost-${columns}`,
      };
      const record = async (name: string, args: readonly string[], answers = {}) => {
        const screen = await terminal.show(onNode(node, [UNGHOST, ...args]), columns, { env, answers });
        const file = `golden/${ghosts}-ghosts/${name}.${columns}.txt`;
        await expect(`$ unghost ${args.join(" ")}\n${inOrder(normalised(screen))}`).toMatchFileSnapshot(file);
      };
      await record("scan", ["scan"]);
      await record("scan-wide", ["scan", "-o", "wide"]);
      await record("scan-pod", ["scan", "shop/web-0"]);
      await record("heal-dry-run", ["heal", "--dry-run"]);
      await record("heal", ["heal"], { "[y/N]": "y" });
      await record("scan-after", ["scan"]);
      await record("history", ["history"]);
      await record("quarantine", ["quarantine", "list"]);
    }
  },
);
