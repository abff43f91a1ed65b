import { expect, test } from "vitest";
import { type Holder, type HolderFacts, holderOf } from "../../src/evidence/sandbox-creations.ts";

/** Every combination, in the order of the reference's table "name X is reserved for Y". */
const ROWS: readonly (readonly [HolderFacts["listed"], "recorded" | "unrecorded", "plugin" | "no plugin", Holder])[] = [
  ["notReady", "recorded", "no plugin", "ghost"],
  ["notReady", "recorded", "plugin", "ghost"],
  ["notReady", "unrecorded", "no plugin", "ghost"],
  ["notReady", "unrecorded", "plugin", "ghost"],
  ["ready", "recorded", "no plugin", "live"],
  ["ready", "recorded", "plugin", "live"],
  ["ready", "unrecorded", "no plugin", "live"],
  ["ready", "unrecorded", "plugin", "live"],
  [undefined, "recorded", "no plugin", "in-flight"],
  [undefined, "recorded", "plugin", "in-flight"],
  [undefined, "unrecorded", "plugin", "in-flight"],
  [undefined, "unrecorded", "no plugin", "memory-only"],
];

test.each(ROWS)("a holder that is listed as %s, %s and with %s is %s", (listed, record, plugin, expected) => {
  expect(holderOf({ listed, recorded: record === "recorded", pluginRuns: plugin === "plugin" })).toBe(expected);
});
