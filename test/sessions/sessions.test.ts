import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { leakedLease } from "../../lab/faults/host-local.ts";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { finishedPod, runPod, runPods } from "../../lab/pods.ts";
import { onNode, openTerminal, type Terminal } from "../../lab/terminal.ts";
import { COMMAND_NAMES } from "../../src/cli/commands/index.ts";
import { UNGHOST } from "../e2e/unghost.ts";
import { NO_REAL_NODE, start } from "../lab/real-node.ts";
import { inOrder, normalised, trimmed } from "./normalise.ts";

const WIDTHS = [60, 80, 200];
const NARROW = 40;
const containers = [{ name: "main" }];

let terminal: Terminal;
beforeAll(async () => {
  terminal = await openTerminal();
});
afterAll(() => terminal.close());

/** Ghosts of two classes, a leaked address, and one finished pod. */
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

async function undoableId(node: LabNode, env: Readonly<Record<string, string>>): Promise<string> {
  const { stdout } = await node.exec([UNGHOST, "history", "-o", "json"], { env });
  const { entries } = JSON.parse(stdout) as { entries: readonly { readonly id: string; readonly undoable: boolean }[] };
  return entries.find(({ undoable }) => undoable)?.id ?? "";
}

const ID = "4f".repeat(32);
const LINE = `Nov 15 03:22:07 edge-7 containerd[801]: level=error msg="StopPodSandbox for \\"${ID}\\" failed" error="failed to destroy network for sandbox \\"${ID}\\": failed to get network \\"cbr0\\" cached result: decoding version from network config: unexpected end of JSON input"`;

test.each(WIDTHS)("explain output at %i columns, on any machine", async (columns) => {
  const explained = {
    explain: ["explain", LINE],
    "explain-class": ["explain", "dead-after-crash"],
    "explain-list": ["explain", "--list"],
    "explain-no-file": ["explain", "/var/log/no-such.log"],
  };
  for (const [name, args] of Object.entries(explained)) {
    const screen = await terminal.show([UNGHOST, ...args], columns);
    const typed = `$ unghost ${args.map((word) => (word.includes(" ") ? `'${word}'` : word)).join(" ")}`;
    await expect(`${typed}\n${trimmed(screen)}`).toMatchFileSnapshot(`golden/explain/${name}.${columns}.txt`);
  }
});

/** test/cli/golden is the renderer's output; this is the terminal's. */
test.each(WIDTHS)("help of every command at %i columns is as recorded", async (columns) => {
  for (const name of ["overview", ...COMMAND_NAMES]) {
    const recorded = readFileSync(resolve(import.meta.dirname, `../cli/golden/${name}.${columns}.txt`), "utf8");
    const command = name === "overview" ? [UNGHOST, "--help"] : [UNGHOST, name, "--help"];
    const isTooLong = recorded.split("\n").some((line) => line.length > columns);

    const screen = trimmed(await terminal.show(command, columns));

    // A command to be copied may be longer than the screen: the terminal wraps it anywhere.
    if (isTooLong) expect(screen.replaceAll("\n", "")).toBe(`${recorded}[exit 0]\n`.replaceAll("\n", ""));
    else expect(screen).toBe(`${recorded}[exit 0]\n`);
  }
});

test.skipIf(NO_REAL_NODE !== undefined).each([3, 40])("operator session on a node with %i ghosts", async (ghosts) => {
  const node = await start();
  for (const columns of [NARROW, ...WIDTHS]) {
    await breakNode(node, ghosts);
    const env = {
      PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
      UNGHOST_NODE: "edge-7",
      UNGHOST_NO_KUBE: "true",
      UNGHOST_MIN_AGE: "0s",
      // Sequentially; and each width has its own journal.
      UNGHOST_CONCURRENCY: "1",
      UNGHOST_STATE_DIR: `/var/lib/unghost-${columns}`,
    };
    const record = async (name: string, args: readonly string[], answers: Readonly<Record<string, string>> = {}) => {
      const screen = await terminal.show(onNode(node, [UNGHOST, ...args]), columns, { env, answers });
      const file = `golden/${ghosts}-ghosts/${name}.${columns}.txt`;
      await expect(normalised(`$ unghost ${args.join(" ")}\n${inOrder(normalised(screen))}`)).toMatchFileSnapshot(file);
    };
    await record("scan", ["scan"]);
    if (columns === NARROW) {
      await record("heal", ["heal"], { "[y/N]": "y" });
      continue;
    }
    await record("scan-wide", ["scan", "-o", "wide"]);
    await record("scan-pod", ["scan", "shop/web-0"]);
    await record("heal-dry-run", ["heal", "--dry-run"]);
    await record("heal", ["heal"], { "[y/N]": "y" });
    await record("scan-after", ["scan"]);
    await record("history", ["history"]);
    await record("history-id", ["history", await undoableId(node, env)]);
    await record("quarantine", ["quarantine", "list"]);
  }
});
