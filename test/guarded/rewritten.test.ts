import { readFileSync } from "node:fs";
import { rename } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { CNI_CONF_FILE } from "../../lab/cni-config.ts";
import type { LabNode } from "../../lab/node.ts";
import { runPods } from "../../lab/pods.ts";
import { CONTAINERD_CONFIG } from "../../lab/runtime-config.ts";
import { guardStatus } from "../e2e/guarded-node.ts";
import { unghostIn } from "../e2e/healed-node.ts";
import { CALL, eachRuntime, play, start } from "../lab/real-node.ts";

const PODS = 4;
const REWRITE_MS = 100;

/** As cilium, multus and kube-ovn do it: the same configuration again, renamed into place. */
async function rewrite(node: LabNode, stop: AbortSignal): Promise<void> {
  const text = readFileSync(node.path(CNI_CONF_FILE));
  while (!stop.aborted) {
    await node.writeFile(`${CNI_CONF_FILE}.new`, text);
    await rename(node.path(`${CNI_CONF_FILE}.new`), node.path(CNI_CONF_FILE));
    await sleep(REWRITE_MS);
  }
}

eachRuntime(
  "no pod start fails while the guard comes and goes and others rewrite the configuration",
  async (runtime) => {
    const node = await start({ runtime });
    const before = readFileSync(node.path(CONTAINERD_CONFIG), "utf8");
    play((stop) => rewrite(node, stop));
    const beside = async (name: string, action: Promise<unknown>): Promise<void> => {
      await Promise.all([runPods(node, PODS, { name }), action]);
    };

    await beside("install", unghostIn(node, ["cni", "install", "--yes"]));
    await node.restartRuntime();
    expect((await guardStatus(node)).inEffect).toBe(true);
    await beside("upgrade", unghostIn(node, ["cni", "install", "--yes"]));
    await beside("uninstall", unghostIn(node, ["cni", "uninstall", "--yes"]));
    await node.restartRuntime();
    await beside("after", unghostIn(node, ["cni", "uninstall", "--yes"]));

    expect(await node.cri.listPodSandbox({}, CALL)).toHaveLength(4 * PODS);
    expect(readFileSync(node.path(CONTAINERD_CONFIG), "utf8")).toBe(before);
    expect(await guardStatus(node)).toMatchObject({ installed: false, inEffect: false });
  },
);
