/** `make picture`: docs/images/session.svg, recorded from a real run: a lab node with two ghosts and a leak. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { leakedLease } from "../lab/faults/host-local.ts";
import { emptyResultCache } from "../lab/faults/result-cache.ts";
import { startNode } from "../lab/node.ts";
import { finishedPod, runPod } from "../lab/pods.ts";
import { onNode, openTerminal } from "../lab/terminal.ts";
import { screenAsSvg } from "../lab/terminal-picture.ts";

const PICTURE = "docs/images/session.svg";
const COLUMNS = 100;
const containers = [{ name: "main" }];
const env = {
  PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
  UNGHOST_NODE: "edge-7",
  UNGHOST_NO_KUBE: "true",
  UNGHOST_MIN_AGE: "0s",
};

const node = await startNode();
const terminal = await openTerminal();
try {
  const web = await runPod(node, { name: "web-0", namespace: "shop", containers });
  await runPod(node, { name: "db-0", namespace: "shop", containers });
  await finishedPod(node, { name: "migrate-1", namespace: "shop" });
  await node.powerCut();
  await emptyResultCache(node, web);
  await node.powerOn();
  await leakedLease(node);
  const show = async (args: readonly string[], answers = {}): Promise<string> => {
    const command = onNode(node, [resolve("dist/unghost"), ...args]);
    const screen = await terminal.show(command, COLUMNS, { env, answers, colours: true });
    return `$ unghost ${args.join(" ")}\n${screen.replace(/\n?\[exit \d+\]\s*$/, "")}`;
  };
  const screens = [await show(["scan"]), await show(["heal"], { "[y/N]": "y" }), await show(["scan"])];
  mkdirSync(dirname(PICTURE), { recursive: true });
  writeFileSync(PICTURE, screenAsSvg(screens.join("\n\n"), COLUMNS));
  console.log(PICTURE);
} finally {
  await terminal.close();
  await node.destroy();
}
