import { expect, test } from "vitest";
import type { NodeTools } from "../../src/heal/node-tools.ts";
import { whoKnows } from "../../src/heal/prove.ts";
import { read } from "../../src/snapshot/source.ts";
import { idOf, pluginFor } from "../support/snapshot-builder.ts";

const ID = idOf("a");

/** A node on which a plugin works on the sandbox for so many readings. */
function busyFor(readings: number) {
  const slept: number[] = [];
  let left = readings;
  const tools = {
    facts: {
      sandbox: () => Promise.resolve(undefined),
      containerd: () => Promise.resolve(undefined),
      processes: () =>
        Promise.resolve(
          read({ plugins: left-- > 0 ? [pluginFor("a", "DEL", 1)] : [], shims: [], byContainer: new Map() }),
        ),
      renew: () => undefined,
    },
    waits: { pluginMs: 500 },
    sleep: (milliseconds: number) => Promise.resolve(slept.push(milliseconds)),
  };
  return { slept, tools: tools as unknown as NodeTools };
}

test.each([
  [0, undefined, 0],
  [1, undefined, 0],
  [4, undefined, 300],
  [100, "a network plugin works on it", 500],
])("an id that a plugin works on for %d readings: known as %j after %d ms", async (readings, knower, waited) => {
  const { slept, tools } = busyFor(readings);

  expect(await whoKnows(ID, tools)).toBe(knower);
  expect(slept.reduce((sum, one) => sum + one, 0)).toBe(waited);
});
