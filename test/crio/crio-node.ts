import { readFileSync } from "node:fs";
import { expect } from "vitest";
import type { LabNode } from "../../lab/node.ts";
import { type LabPod, sandboxConfig } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { cniFiles, listedIds } from "../e2e/healed-node.ts";
import { CALL, start } from "../lab/real-node.ts";

const RUN_AGAIN_MS = 60_000;

/** CRI-O removes nothing on its own after a reboot: crio-wipe.service does, before crio starts. */
export const NO_WIPE = "[crio]\ninternal_wipe = false\n";

/** A node with a real CRI-O, destroyed after the test. `config` is a drop-in of its configuration. */
export function crioNode(config = ""): Promise<LabNode> {
  return start({ runtime: "crio", runtimeConfig: config });
}

/** Not listed, no cache file, no address; and the pod can run again under the same name. */
export async function expectReleased(node: LabNode, ...pods: readonly LabPod[]): Promise<void> {
  await expectNothingLeft(node, ...pods);
  for (const { ref } of pods) {
    // CRI-O refuses calls while it reads its network configurations again.
    const run = () => node.cri.runPodSandbox(sandboxConfig(ref, ref), CALL).catch(() => undefined);
    await until(`${ref.name} runs again under its name`, RUN_AGAIN_MS, run);
  }
}

/** Not listed, no cache file, no address. */
export async function expectNothingLeft(node: LabNode, ...pods: readonly LabPod[]): Promise<void> {
  const listed = await listedIds(node);
  const files = cniFiles(node);
  for (const { sandboxId } of pods) {
    expect(listed).not.toContain(sandboxId);
    expect(files.filter((file) => file.includes(sandboxId))).toEqual([]);
  }
}

export function crioLog(node: LabNode): string {
  return readFileSync(node.logPath, "utf8");
}
