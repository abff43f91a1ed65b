import { expect, test } from "vitest";
import { SettingsError } from "../../src/cli/settings/kinds.ts";
import { classIds, withClassIds } from "../../src/cli/targets.ts";

test("a class may be named by its id or its code, in any case", async () => {
  expect(await classIds(["B1", "b4", "dead-after-crash"])).toEqual([
    "libcni-result-cache-corrupt",
    "multus-lossy-conflist",
    "dead-after-crash",
  ]);
  expect(await withClassIds({ only: ["S1"], skip: ["n1"], other: 1 })).toEqual({
    only: ["dead-after-crash"],
    skip: ["retained-notready"],
    other: 1,
  });
});

test.each(["B99", "libcni-result-cache-corupt", ""])("refuses the class name %j", async (name) => {
  await expect(classIds([name])).rejects.toThrow(SettingsError);
});
