/** A safety-critical part of unghost, and the unit tests that have to notice every change of it. */
export interface MutatedModule {
  readonly name: string;
  readonly sources: readonly string[];
  readonly tests: readonly string[];
}

/** The one list of what `make mutation` mutates. What only renders a decision in words is left out. */
export const MODULES: readonly MutatedModule[] = [
  {
    name: "liveness",
    sources: ["src/liveness/liveness.ts", "src/liveness/reference.ts", "src/liveness/stored.ts", "src/heal/prove.ts"],
    tests: ["test/liveness/*.test.ts", "test/heal/prove.test.ts"],
  },
  { name: "ladder", sources: ["src/plan/ladder.ts"], tests: ["test/plan/ladder.test.ts"] },
  {
    name: "plan",
    sources: [
      "src/plan/plan.ts",
      "src/plan/cap.ts",
      "src/plan/clock.ts",
      "src/plan/csi-order.ts",
      "src/plan/obstacles.ts",
      "src/plan/order.ts",
      "src/plan/sweep.ts",
      "src/plan/unfinished.ts",
    ],
    tests: ["test/plan/*.test.ts"],
  },
  {
    name: "guards",
    sources: [
      "src/classes/candidates.ts",
      "src/classes/cluster-holds.ts",
      "src/classes/kubelet-alive.ts",
      "src/classes/pod-truth.ts",
      "src/classes/recovering.ts",
      "src/heal/probe-gate.ts",
      "src/heal/storm-brake.ts",
      "src/heal/turns.ts",
    ],
    tests: [
      "test/classes/candidates.test.ts",
      "test/classes/cluster-holds.test.ts",
      "test/classes/guards.test.ts",
      "test/classes/left-behind.test.ts",
      "test/classes/pod-gone.test.ts",
      "test/classes/retention.test.ts",
      "test/heal/probe-gate.test.ts",
      "test/heal/storm-brake.test.ts",
      "test/heal/turns.test.ts",
    ],
  },
  {
    name: "steps",
    sources: ["src/heal/steps/*.ts"],
    tests: [
      "test/heal/steps/*.test.ts",
      "test/heal/delete-volume-attachment.test.ts",
      "test/heal/kick-pod.test.ts",
      "test/heal/release-addresses.test.ts",
      "test/heal/run-action.test.ts",
      "test/heal/afterwards.test.ts",
    ],
  },
  {
    name: "quarantine",
    sources: [
      "src/heal/quarantine.ts",
      "src/heal/quarantine-place.ts",
      "src/heal/settle-quarantine.ts",
      "src/heal/move-away.ts",
      "src/heal/restore.ts",
    ],
    tests: [
      "test/heal/quarantine.test.ts",
      "test/heal/quarantine-races.test.ts",
      "test/heal/move-away.test.ts",
      "test/heal/recover.test.ts",
      "test/heal/undo.test.ts",
    ],
  },
  {
    name: "undo",
    sources: ["src/heal/undo.ts", "src/heal/settle-undo.ts"],
    tests: ["test/heal/undo.test.ts", "test/heal/undo-races.test.ts", "test/heal/recover.test.ts"],
  },
  {
    name: "journal-recovery",
    sources: ["src/heal/recover.ts", "src/heal/unsettled.ts", "src/heal/unfinished.ts", "src/heal/journal-reader.ts"],
    tests: [
      "test/heal/recover.test.ts",
      "test/heal/unsettled.test.ts",
      "test/heal/journal-reader.test.ts",
      "test/heal/session.test.ts",
    ],
  },
];
