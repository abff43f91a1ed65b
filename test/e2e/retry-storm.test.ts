import { describe, expect } from "vitest";
import { consumedMultusCache, type MultusGhost } from "../../lab/faults/multus.ts";
import { useMultus } from "../../lab/multus.ts";
import type { LabNode } from "../../lab/node.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, play, start } from "../lab/real-node.ts";
import { heal } from "./healed-node.ts";
import { HAS_MULTUS, WHY_NO_MULTUS } from "./multus-node.ts";
import { kubeletKnows, named, scan } from "./scanned-node.ts";

const SCANS = 10;
const GHOSTS = ["a", "b", "c", "d"] as const;

describe.skipIf(!HAS_MULTUS)(`a storm of retries${WHY_NO_MULTUS}`, { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("finds and heals every ghost although plugins work on them", async (runtime) => {
    const node = await start({ runtime });
    await useMultus(node);
    const ghosts: MultusGhost[] = [];
    for (const name of GHOSTS) ghosts.push(await consumedMultusCache(node, { name }));
    kubeletKnows(node, ...ghosts);
    for (const { sandboxId } of ghosts) play((stop) => stopWithoutPause(node, sandboxId, stop));

    const expected = ghosts.map(({ sandboxId }) => sandboxId as string).toSorted();
    for (let scans = 0; scans < SCANS; scans++) {
      const ids = named(await scan(node, ["--min-age", "0s"])).map((id) => id.split("/")[1]);
      expect(ids.toSorted()).toEqual(expected);
    }
    const { report } = await heal(node, ["--min-age", "0s"]);
    expect(
      report.actions?.map(({ outcome }) => outcome),
      JSON.stringify(report.actions),
    ).toEqual(GHOSTS.map(() => "healed"));
    expect(report.remaining).toEqual([]);
  });
});

async function stopWithoutPause(node: LabNode, sandboxId: string, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await node.cri.stopPodSandbox(sandboxId, CALL).catch((error: unknown) => {
      if (!(error instanceof RuntimeError)) throw error;
    });
  }
}
