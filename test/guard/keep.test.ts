import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { dropOldRecords } from "../../src/guard/keep.ts";

test("a record goes after a day, unless the runtime has a result of the same attachment", () => {
  const root = mkdtempSync(join(tmpdir(), "unghost-guard-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const stateDir = join(root, "state");
  for (const dir of ["state/attachments", "state/failures", "var/lib/cni/results"])
    mkdirSync(join(root, dir), { recursive: true });
  writeFileSync(join(root, "var/lib/cni/results/net-runs-eth0"), "{}");
  const records = ["attachments/runs@eth0@bridge", "attachments/gone@eth0@bridge", "failures/gone@eth0@bridge"];
  for (const name of records) writeFileSync(join(stateDir, name), "");
  const there = (): readonly boolean[] => records.map((name) => existsSync(join(stateDir, name)));

  dropOldRecords(root, stateDir, Date.now() + 23 * 3_600_000);
  expect(there()).toEqual([true, true, true]);
  dropOldRecords(root, stateDir, Date.now() + 25 * 3_600_000);
  expect(there()).toEqual([true, false, false]);
});
