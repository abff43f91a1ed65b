import { expect, test } from "vitest";
import { checkCniFiles } from "../../src/doctor/sources.ts";
import type { KeeperState } from "../../src/durable/keeper-state.ts";

const RUNNING: KeeperState = { directories: 4, filesSynced: 120, waiting: 0, syncingSeconds: 0, problems: [] };

test.each([
  ["absent", undefined],
  ["ok", RUNNING],
  ["ok", { ...RUNNING, problems: [{ kind: "unwatched", dir: "/var/lib/cni" }] }],
  ["missing", { ...RUNNING, problems: [{ kind: "unsynced", dir: "/var/lib/cni", code: "EIO" }] }],
] as const)("is %s for the keeper %j", (status, keeper) => {
  expect(checkCniFiles(keeper)).toMatchObject({ id: "durable CNI files", status });
});
