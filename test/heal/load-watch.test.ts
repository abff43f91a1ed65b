import { describe, expect, test } from "vitest";
import { loadWatch } from "../../src/heal/load-watch.ts";

function reactionsTo(...times: readonly number[]): readonly string[] {
  const reactions: string[] = [];
  const watch = loadWatch({ slowDown: () => reactions.push("slower"), speedUp: () => reactions.push("faster") });
  for (const milliseconds of times) watch.took(milliseconds);
  return reactions;
}

const five = (milliseconds: number): readonly number[] => Array.from({ length: 5 }, () => milliseconds);

describe("the watch over the runtime's load", () => {
  test.each([
    ["nothing is known before the first calls", five(100), []],
    ["calls stay as they were", [...five(100), ...five(120)], ["faster"]],
    ["calls take well longer than the first", [...five(100), ...five(500)], ["slower"]],
    ["calls recover", [...five(100), ...five(500), ...five(90)], ["slower", "faster"]],
    ["short calls become a little less short", [...five(10), ...five(200)], ["faster"]],
    ["one call of many hangs", [...five(100), 100, 130_000, 100, 100, 100], ["faster"]],
  ])("%s", (_name, times, expected) => {
    expect(reactionsTo(...times)).toEqual(expected);
  });
});
