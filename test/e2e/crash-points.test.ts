import { expect, test } from "vitest";
import { crashPoints } from "../../lab/crash-points.ts";
import { whyNoRecordedDisk } from "../../lab/loop-disk.ts";
import { HANG_GUARD_MS } from "../lab/real-node.ts";
import { UNGHOST } from "./unghost.ts";

const noDisk = whyNoRecordedDisk();

test.skipIf(noDisk !== undefined)(
  "a power cut after any write of a heal, an undo and a boot loses nothing, and the next run understands what is left",
  { timeout: HANG_GUARD_MS },
  async () => {
    // A sample: `make crash-points` checks every write, on three file systems.
    const options = { unghost: UNGHOST, fileSystem: "ext4", pods: 3, every: 15, bootEvery: 10 } as const;
    const { checked, undone, booted, failures } = await crashPoints(options);
    expect(failures).toEqual([]);
    expect([checked > 10, undone > 0, booted > 0]).toEqual([true, true, true]);
  },
);
