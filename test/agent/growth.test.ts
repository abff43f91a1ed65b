import { describe, expect, test } from "vitest";
import { GrowthMeter } from "../../src/agent/counts.ts";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import { failed, read } from "../../src/host/source.ts";
import type { Snapshot } from "../../src/node/types/snapshot.ts";
import type { Planned } from "../../src/plan/scan.ts";
import { AT_ONCE, ago, containerOf, NOW, sandboxOf, snapshotOf } from "../support/snapshot-builder.ts";

interface Node {
  readonly boot?: string;
  /** Attempts of each looping container, by its pod's digit. */
  readonly restarts?: Readonly<Record<string, number>>;
  /** Pods that exist and do not loop. */
  readonly quiet?: string;
  readonly stalls?: number;
}

function seen(
  { boot = "boot", restarts = {}, quiet = "", stalls }: Node,
  sources: Partial<Snapshot> = {},
): Pick<Planned, "snapshot" | "diagnosis"> {
  const loops = Object.entries(restarts);
  const nanoseconds = (secondsAgo: number): bigint => BigInt(ago(secondsAgo).getTime()) * 1_000_000n;
  const snapshot = snapshotOf(
    {
      sandboxes: [...loops.map(([digit]) => digit), ...quiet.split("")].map((digit) =>
        sandboxOf(digit, { state: "ready" }),
      ),
      containers: loops.flatMap(([digit, attempt]) => [
        containerOf(digit, { attempt, createdAt: nanoseconds(5), state: "running" }),
        containerOf(digit, { attempt: attempt - 1, createdAt: nanoseconds(35) }),
      ]),
    },
    {
      boot: read({ id: boot, uptimeSeconds: 3600, startedAt: new Date(NOW.getTime() - 3_600_000) }),
      ...(stalls === undefined ? {} : { kernel: read(kernelWith(stalls)) }),
      ...sources,
    },
  );
  return { snapshot, diagnosis: diagnose(snapshot, AT_ONCE) };
}

function kernelWith(count: number) {
  return { stalls: { count }, hungTasks: { count: 0 }, netdeviceWaits: { count: 0 }, sinceBoot: true };
}

/** The increments of each scan after the first one. */
function growth(...scans: readonly Pick<Planned, "snapshot" | "diagnosis">[]): readonly (readonly [number, number])[] {
  const meter = new GrowthMeter();
  return scans
    .map((scan) => meter.take(scan))
    .map(({ crashRestarts, kernelStalls }) => [crashRestarts, kernelStalls] as const)
    .slice(1);
}

describe("growth between scans", () => {
  test("ignores what happened before the agent started", () => {
    expect(new GrowthMeter().take(seen({ restarts: { a: 50 }, stalls: 3 }))).toEqual({
      crashRestarts: 0,
      kernelStalls: 0,
    });
  });

  test("counts new restarts per pod", () => {
    expect(
      growth(
        seen({ restarts: { a: 5 }, stalls: 1 }),
        seen({ restarts: { a: 7, b: 4 }, stalls: 2 }),
        seen({ restarts: { a: 7, b: 5 }, stalls: 2 }),
      ),
    ).toEqual([
      [6, 1],
      [1, 0],
    ]);
  });

  test("a loop that stops and starts again is not counted twice", () => {
    expect(growth(seen({ restarts: { a: 5 } }), seen({ quiet: "a" }), seen({ restarts: { a: 6 } }))).toEqual([
      [0, 0],
      [1, 0],
    ]);
  });

  test("a scan that could not read the runtime resets nothing", () => {
    const blind = seen({}, { cri: failed("down") });

    expect(growth(seen({ restarts: { a: 5 } }), blind, seen({ restarts: { a: 6 } }))).toEqual([
      [0, 0],
      [1, 0],
    ]);
  });

  test("after a boot everything counted since the boot is new", () => {
    expect(
      growth(seen({ restarts: { a: 50 }, stalls: 9 }), seen({ boot: "next", restarts: { a: 4 }, stalls: 2 })),
    ).toEqual([[4, 2]]);
  });

  test("the first read of the kernel log in this boot adds nothing", () => {
    expect(growth(seen({}), seen({ stalls: 4 }), seen({ stalls: 5 }))).toEqual([
      [0, 0],
      [0, 1],
    ]);
  });
});
