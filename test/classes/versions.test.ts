import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  compareVersions,
  containerdBehaviour,
  crioBehaviour,
  parseVersion,
  type StopBehaviour,
} from "../../src/evidence/versions.ts";

describe("StopPodSandbox with a failing DEL", () => {
  const BLOCKS: StopBehaviour = "del-error-blocks";
  const SKIPS: StopBehaviour = "del-skipped-without-result";
  const IGNORES: StopBehaviour = "del-tried-error-ignored-without-result";

  // The first and last release of every cell of the reference's matrix.
  test.each([
    ["1.6.0", BLOCKS],
    ["1.6.36", BLOCKS],
    ["1.6.37", SKIPS],
    ["1.6.99", SKIPS],
    ["1.7.0", BLOCKS],
    ["1.7.22", BLOCKS],
    ["1.7.23", SKIPS],
    ["1.7.30", SKIPS],
    ["1.7.31", IGNORES],
    ["2.0.0", SKIPS],
    ["2.0.7", SKIPS],
    ["2.0.8", IGNORES],
    ["2.1.0", SKIPS],
    ["2.1.6", SKIPS],
    ["2.1.7", IGNORES],
    ["2.2.0", SKIPS],
    ["2.2.1", SKIPS],
    ["2.2.2", IGNORES],
    ["2.3.0", IGNORES],
    ["2.3.4", IGNORES],
    ["2.4.0-beta.0", IGNORES],
  ])("containerd %s: %s", (version, stop) => {
    expect(containerdBehaviour(version)?.stop).toBe(stop);
  });
});

test.each([
  ["1.6.20~ds1", true],
  ["v1.7.27-k3s1", true],
  ["2.0.0", false],
  ["2.3.4", false],
])("containerd %s: an unreadable result blocks removal: %s", (version, blocks) => {
  expect(containerdBehaviour(version)?.corruptResultBlocks).toBe(blocks);
});

test.each([
  ["1.24.6", true],
  ["1.30.14", true],
  ["1.31.0", false],
  ["2.0.0", false],
])("CRI-O %s: an unreadable result blocks removal: %s", (version, blocks) => {
  expect(crioBehaviour(version)?.corruptResultBlocks).toBe(blocks);
});

test.each([
  ["1.32.7", true],
  ["1.32.8", false],
  ["1.33.3", true],
  ["1.33.4", false],
  ["1.34.0", false],
  ["2.0.0", false],
])("CRI-O %s: a failing DEL blocks removal forever: %s", (version, blocks) => {
  expect(crioBehaviour(version)?.delErrorBlocks).toBe(blocks);
});

test.each([
  ["1.7.30", false],
  ["2.0.5", true],
  ["2.0.6", false],
  ["2.1.3", true],
  ["2.1.4", false],
  ["2.2.0", false],
])("containerd %s: a stored sandbox without metadata prevents its start: %s", (version, fatal) => {
  expect(containerdBehaviour(version)?.fatalWithoutMetadata).toBe(fatal);
});

test.each([
  ["1.7.30", false],
  ["2.0.8", true],
  ["2.1.9", true],
  ["2.2.5", true],
  ["2.2.6", false],
  ["2.3.2", true],
  ["2.3.3", false],
])("containerd %s: a late failure leaves a record behind: %s", (version, leaks) => {
  expect(containerdBehaviour(version)?.leaksRecords).toBe(leaks);
});

test.each([
  ["1.6.8", false],
  ["1.6.9", true],
  ["1.7.0", true],
  ["2.3.4", true],
])("containerd %s: records are written before plugins are called: %s", (version, first) => {
  expect(containerdBehaviour(version)?.recordsBeforeAdd).toBe(first);
});

test.each(["", "unknown", "1.5.9", "0.9.0", "cri-o"])("returns nothing for %j", (version) => {
  expect(containerdBehaviour(version)).toBeUndefined();
});

test.each([
  ["v1.7.27-k3s1", { major: 1, minor: 7, patch: 27 }],
  ["1.6.20~ds1", { major: 1, minor: 6, patch: 20 }],
  [" 2.1 ", { major: 2, minor: 1, patch: 0 }],
  ["release-2.1", undefined],
])("parseVersion(%j)", (text, version) => {
  expect(parseVersion(text)).toEqual(version);
});

test("versions are ordered numerically", () => {
  const part = fc.nat({ max: 999 });
  const version = fc.record({ major: part, minor: part, patch: part });

  fc.assert(
    fc.property(version, version, (one, other) => {
      const weight = (v: typeof one) => v.major * 1e6 + v.minor * 1e3 + v.patch;
      expect(Math.sign(compareVersions(one, other))).toBe(Math.sign(weight(one) - weight(other)));
    }),
  );
});
