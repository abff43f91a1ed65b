import { expect, test } from "vitest";
import { addressesFor } from "../../src/agent/counts.ts";
import { resultOf } from "../support/snapshot-builder.ts";

const file = (network: string, ...addresses: string[]) => ({ ...resultOf("a"), network, addresses });

test.each([
  { written: ["10.42.0.7/24"], size: 253 },
  { written: ["10.88.3.4/16"], size: 65533 },
  { written: ["fd00::7/64", "10.42.0.7/25"], size: 125 },
  { written: ["10.42.0.7/32"], size: 0 },
  { written: ["fd00::7/64"], size: undefined },
  { written: ["10.42.0.7/99"], size: undefined },
  { written: ["10.42.0.7"], size: undefined },
  { written: [], size: undefined },
])("a network with $written has $size addresses for pods", ({ written, size }) => {
  expect(addressesFor("cbr0", [file("other", "10.0.0.1/8"), file("cbr0", ...written)])).toBe(size);
});
