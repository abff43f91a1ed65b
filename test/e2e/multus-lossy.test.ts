import { describe, expect } from "vitest";
import { eachRuntime, HANG_GUARD_MS, start } from "../lab/real-node.ts";
import { heal } from "./healed-node.ts";
import { HAS_MULTUS, WHY_NO_MULTUS } from "./multus-node.ts";
import {
  expectAllRunAgain,
  expectKubeletCanRemove,
  expectNoTrace,
  powerCutUnderThinMultus,
} from "./multus-power-cut.ts";

const PODS = 6;

describe.skipIf(!HAS_MULTUS)(`multus that strips delegates${WHY_NO_MULTUS}`, { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("heal restores all pods after a power cut beside a running kubelet", async (runtime) => {
    const node = await start({ runtime });
    const pods = await powerCutUnderThinMultus(node, PODS);

    const { code, report } = await heal(node, []);

    expect(report.actions?.filter(({ outcome }) => outcome !== "healed")).toEqual([]);
    expect([code, report.remaining]).toEqual([0, []]);
    await expectAllRunAgain(node, pods);
    await expectKubeletCanRemove(node, pods);
    // What the delegates still held is released once the sandboxes are gone.
    await heal(node, ["--inflight-grace", "0s", "--min-age", "0s"]);
    expectNoTrace(node, pods);
  });
});
