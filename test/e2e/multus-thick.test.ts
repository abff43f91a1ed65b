import { describe, expect } from "vitest";
import { runMultusPod } from "../../lab/faults/multus.ts";
import { killRuntimeMidAdd } from "../../lab/faults/thick-multus.ts";
import { useThickMultus } from "../../lab/multus-thick.ts";
import { eachRuntime, HANG_GUARD_MS, start } from "../lab/real-node.ts";
import { expectAlive, healAll, listedIds, unghostIn } from "./healed-node.ts";
import { HAS_MULTUS, WHY_NO_MULTUS } from "./multus-node.ts";
import { kubeletKnows } from "./scanned-node.ts";

const PODS = 6;

describe.skipIf(!HAS_MULTUS)(`a node with thick multus${WHY_NO_MULTUS}`, { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("heal removes what a containerd killed in mid-ADD left half-made", async (runtime) => {
    const node = await start({ runtime });
    await useThickMultus(node);
    const running = await runMultusPod(node, { name: "runs", containers: [{ name: "main" }] });
    const { refs } = await killRuntimeMidAdd(node, PODS);
    kubeletKnows(node, ...refs.map((ref) => ({ ref })), running);

    const dry = await unghostIn(node, ["heal", "--dry-run", "--min-age", "0s"]);
    const report = await healAll(node, ["--min-age", "0s"]);

    // No treatment is promised that thick multus has no use for.
    expect(dry.stdout).not.toContain("multus' DEL safe");
    expect(report.actions?.filter(({ finding }) => finding.startsWith("multus-"))).toEqual([]);
    expect(await listedIds(node)).toEqual([running.sandboxId]);
    await expectAlive(node, { ready: [running], kept: [] });
  });
});
