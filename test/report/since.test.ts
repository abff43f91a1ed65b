import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import type { ContainerExit } from "../../src/node/types/runtime.ts";
import { buildReport } from "../../src/report/build.ts";
import { findingAge } from "../../src/report/words.ts";
import {
  AT_ONCE,
  addressOf,
  ago,
  containerOf,
  LOST,
  NOW,
  type NodeParts,
  pluginFor,
  recordOf,
  resultOf,
  sandboxOf,
  snapshotOf,
} from "../support/snapshot-builder.ts";

const DAY = 86_400;

/** containerd's exit time of a container whose task was missing at its start. */
function lostAt(secondsAgo: number): ContainerExit {
  return { ...LOST, finishedAt: BigInt(ago(secondsAgo).getTime()) * 1_000_000n };
}

/** The age of each finding, by class. */
function ages(parts: NodeParts): readonly (readonly [string | undefined, string])[] {
  const snapshot = snapshotOf(parts);
  const { findings } = buildReport(snapshot, diagnose(snapshot, AT_ONCE));
  return findings.map((finding) => [finding.sinceSource, findingAge(finding, NOW.toISOString())] as const);
}

describe("the age of a finding", () => {
  const old = sandboxOf("a", { createdSecondsAgo: 9 * DAY });

  test("counts from the start of the runtime that found it dead, also several boots ago", () => {
    const containers = [containerOf("a", { exit: lostAt(5 * DAY) })];

    expect(ages({ sandboxes: [old], containers })).toEqual([["runtime-start", "5d"]]);
  });

  test("without a container counts from the first start of the runtime that others did not survive", () => {
    const sandboxes = [
      old,
      sandboxOf("b", { createdSecondsAgo: 8 * DAY }),
      sandboxOf("c", { createdSecondsAgo: 4 * DAY }),
    ];
    const containers = [containerOf("b", { exit: lostAt(5 * DAY) }), containerOf("c", { exit: lostAt(1800) })];

    expect(ages({ sandboxes, containers })).toEqual([
      ["runtime-start", "5d"],
      ["runtime-start", "5d"],
      ["runtime-start", "30m"],
    ]);
  });

  test("is a lower bound where only this boot is known", () => {
    expect(ages({ sandboxes: [old] })).toEqual([["boot", ">60m"]]);
  });

  test("in this boot counts from its last sign of life", () => {
    const recent = { sandboxes: [sandboxOf("a", { createdSecondsAgo: 900 })], results: [resultOf("a", "empty")] };

    expect(ages({ ...recent, runtimeVersion: "1.6.20" })).toEqual([["last-sign", "15m"]]);
  });

  test("of a leaked address is the age of its file, which may be older than the boot", () => {
    expect(ages({ addresses: [addressOf("a", "10.88.0.2", 3 * DAY)] })).toEqual([["written", "3d"]]);
  });

  test("of a hung plugin is the age of its process", () => {
    const parts = { records: [recordOf("a")], plugins: [pluginFor("a", "DEL", 1200)] };

    expect(ages(parts)).toContainEqual(["process", "20m"]);
  });

  test("ignores times of a clock that was ahead, and of one that was never set", () => {
    const ahead = containerOf("a", { exit: lostAt(-DAY) });
    const never = containerOf("a", { exit: { ...lostAt(0), finishedAt: 0n } });

    for (const container of [ahead, never]) {
      expect(ages({ sandboxes: [old], containers: [container] })).toEqual([["boot", ">60m"]]);
    }
  });
});
