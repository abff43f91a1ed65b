import { describe, expect, test } from "vitest";
import { crashLoopDrivenByGhost } from "../../src/classes/crash-loop-driven-by-ghost.ts";
import { classById } from "../../src/classes/index.ts";
import { toFinding } from "../../src/diagnose/from-logs.ts";
import { crashLoops } from "../../src/evidence/crash-loops.ts";
import type { Finding } from "../../src/evidence/finding.ts";
import { type NodeView, viewOf } from "../../src/evidence/view.ts";
import { read } from "../../src/host/source.ts";
import { containerId } from "../../src/node/types/ids.ts";
import type { Container, Sandbox } from "../../src/node/types/runtime.ts";
import type { KernelFacts, Snapshot } from "../../src/node/types/snapshot.ts";
import { diagnosed, named } from "../support/diagnosed.ts";
import {
  ago,
  containerOf,
  idOf,
  type NodeParts,
  PATIENT,
  recordOf,
  resultOf,
  sandboxOf,
  snapshotOf,
  UPTIME_SECONDS,
} from "../support/snapshot-builder.ts";

function started(digit: string, attempt: number, secondsAgo: number): Container {
  return containerOf(digit, {
    id: containerId(`${digit}${attempt % 10}`.repeat(32)),
    attempt,
    createdAt: BigInt(ago(secondsAgo).getTime()) * 1_000_000n,
  });
}

function ready(digit: string): Sandbox {
  return sandboxOf(digit, { state: "ready", createdSecondsAgo: 900 });
}

function view(parts: NodeParts, sources: Partial<Snapshot> = {}) {
  return viewOf(snapshotOf(parts, sources), PATIENT);
}

function viciousCircles(findings: readonly Finding[], on: NodeView): readonly Finding[] {
  const classified = findings.flatMap((finding) => {
    const failureClass = classById(finding.class);
    return failureClass === undefined ? [] : [{ failureClass, finding }];
  });
  const detected = crashLoopDrivenByGhost.detectAmong?.(classified, on) ?? [];
  return detected.map((one) => toFinding(crashLoopDrivenByGhost, one));
}

describe("crash loops", () => {
  test.each<readonly [string, readonly Container[], boolean]>([
    ["every three seconds", [started("a", 7, 4), started("a", 6, 7)], true],
    ["once in its life", [started("a", 1, 4), started("a", 0, 7)], false],
    ["not for an hour", [started("a", 9, 3600), started("a", 8, 3603)], false],
    ["once a day", [started("a", 9, 4), started("a", 8, 86_404)], false],
    ["with a clock that ran backwards", [started("a", 9, 40), started("a", 8, 4)], false],
    ["in the future", [started("a", 9, -40), started("a", 8, 4)], false],
    ["at an unknown pace", [started("a", 9, 4)], false],
    ["every half minute, with one start in between missing", [started("a", 9, 4), started("a", 7, 64)], true],
  ])("a container that restarts %s", (_, containers, isLoop) => {
    expect(crashLoops(view({ sandboxes: [ready("a")], containers }))).toHaveLength(isLoop ? 1 : 0);
  });

  test("a container that was restarted only by boots is not a loop", () => {
    const boot = read({ id: "boot", uptimeSeconds: 40, startedAt: ago(40) });
    const byBoots = [started("a", 6, 30), started("a", 5, 66)];
    const alone = [started("a", 8, 10), started("a", 7, 20), started("a", 5, 66)];
    const loops = (containers: readonly Container[]) =>
      crashLoops(view({ sandboxes: [ready("a")], containers }, { boot }));

    // The attempt from before the boot is gone by now, and there was no time for 25 of them.
    const onceAfterManyBoots = [started("a", 25, 5), started("a", 24, 28)];

    expect(loops(byBoots)).toEqual([]);
    expect(loops(onceAfterManyBoots)).toEqual([]);
    expect(loops(alone)).toHaveLength(1);
  });

  test("counts the restarts since boot", () => {
    const before = started("a", 20, UPTIME_SECONDS + 60);
    const containers = [started("a", 27, 4), started("a", 26, 7)];

    const [fresh] = crashLoops(view({ sandboxes: [ready("a")], containers }));
    const [old] = crashLoops(view({ sandboxes: [ready("a")], containers: [...containers, before] }));

    expect([fresh?.restartsSinceBoot, old?.restartsSinceBoot]).toEqual([27, 7]);
    expect(fresh).toMatchObject({ everySeconds: 3, lastSecondsAgo: 4, container: "main" });
  });

  test("containers of one name in two pods are two loops", () => {
    const containers = [started("a", 7, 4), started("b", 6, 7)];

    expect(crashLoops(view({ sandboxes: [ready("a"), ready("b")], containers }))).toEqual([]);
  });

  test("a sandbox that is re-created repeatedly is a loop", () => {
    const sandboxes = [
      sandboxOf("a", { uid: "u", attempt: 5, createdSecondsAgo: 5 }),
      sandboxOf("b", { uid: "u", attempt: 4, createdSecondsAgo: 9 }),
    ];

    expect(crashLoops(view({ sandboxes }))).toEqual([expect.objectContaining({ everySeconds: 4 })]);
  });
});

describe("a vicious circle", () => {
  const cause: Finding = {
    id: `libcni-result-cache-corrupt/${idOf("c")}`,
    class: "libcni-result-cache-corrupt",
    severity: "critical",
    subject: { type: "sandbox", sandboxId: idOf("c"), pod: sandboxOf("c").pod },
    summary: "the node plugin cannot start",
    evidence: [],
    blocks: [],
    blockedPods: [
      { namespace: "default", name: "pod-a" },
      { namespace: "default", name: "pod-b" },
    ],
    treatment: { automatic: true, reversible: true, steps: [] },
    cure: [],
  };
  const containers = [started("a", 7, 4), started("a", 6, 6), started("b", 9, 4), started("b", 8, 7)];
  const looping: NodeParts = { sandboxes: [ready("a"), ready("b"), ready("d")], containers };

  test("is one finding that points to its cause, with interval, pods and the count since boot", () => {
    const [circle, ...others] = viciousCircles([cause], view(looping));

    expect(others).toEqual([]);
    expect(circle).toMatchObject({
      id: `crash-loop-driven-by-ghost/${cause.id}`,
      summary: `2 pods restart every 2-3s because of ${cause.id}: the node plugin cannot start`,
      blocks: ["pod default/pod-a", "pod default/pod-b"],
      cure: [],
      treatment: { automatic: false },
    });
    expect(circle?.evidence[0]).toEqual({ source: "cri", fact: "16 restarts since boot" });
  });

  test.each<readonly [string, Partial<Finding>]>([
    [
      "blocks other pods, and only names this one in a text",
      {
        blocks: ["pod default/pod-a"],
        blockedPods: [
          { namespace: "default", name: "pod-aa" },
          { namespace: "other", name: "pod-a" },
        ],
      },
    ],
    ["is a leak and blocks nothing", { class: "leftover-container" }],
  ])("a finding that %s is not a cause", (_, parts) => {
    expect(viciousCircles([{ ...cause, ...parts }], view(looping))).toEqual([]);
  });

  test("a loop has one cause", () => {
    const second = { ...cause, id: "second" };

    expect(viciousCircles([cause, second], view(looping))).toHaveLength(1);
  });

  test("kernel problems are reported with it, and are not a finding alone", () => {
    const last = "rcu: INFO: rcu_sched self-detected stall on CPU";
    const none = { count: 0 };
    const facts: KernelFacts = { stalls: { count: 3, last }, hungTasks: none, netdeviceWaits: none, sinceBoot: true };

    const [circle] = viciousCircles([cause], view(looping, { kernel: read(facts) }));

    expect(circle?.evidence.filter(({ source }) => source === "kernel")).toEqual([
      { source: "kernel", fact: `3 stalls of a processor since boot; the last: ${last}` },
    ]);
    expect(viciousCircles([], view(looping, { kernel: read(facts) }))).toEqual([]);
  });

  test("a sandbox that kubelet re-creates because of a broken cache", () => {
    const sandboxes = [
      sandboxOf("a", { uid: "u", attempt: 5, createdSecondsAgo: 5 }),
      sandboxOf("b", { uid: "u", attempt: 4, createdSecondsAgo: 9 }),
    ];
    const records = [recordOf("a"), recordOf("b")];
    const broken = { sandboxes, records, results: [resultOf("b", "empty")] };

    const B1 = `libcni-result-cache-corrupt/${idOf("b")}`;
    expect(named(diagnosed(broken))).toEqual([`crash-loop-driven-by-ghost/${B1}`, B1].toSorted());
    expect(named(diagnosed(broken, { ...PATIENT, minAgeMs: 0, skip: ["crash-loop-driven-by-ghost"] }))).toEqual([B1]);
  });
});
