import { expect, test } from "vitest";
import { describeKeeper, type KeeperState } from "../../src/durable/keeper-state.ts";

const RUNNING: KeeperState = { directories: 4, filesSynced: 120, waiting: 0, syncingSeconds: 0, problems: [] };

test.each([
  [undefined, "CNI files are not kept durable: no keeper runs (agent.keepDurable, or unghost keep)"],
  [{ ...RUNNING, directories: 0 }, "CNI files: no directory to keep durable yet"],
  [RUNNING, "CNI files: 4 directories kept durable, 120 files synced"],
  [
    { ...RUNNING, waiting: 3, syncingSeconds: 8.2 },
    "CNI files: 4 directories kept durable, 120 files synced; 3 waiting; the disk has taken 8s for one fsync so far",
  ],
  [
    { ...RUNNING, problems: [{ kind: "unsynced", dir: "/var/lib/cni/results", code: "EIO" }] },
    "CNI files: 4 directories kept durable, 120 files synced; fsync in /var/lib/cni/results failed (EIO): check the disk",
  ],
] as const)("describes %j in one line", (state, line) => {
  expect(describeKeeper(state)).toBe(line);
});
