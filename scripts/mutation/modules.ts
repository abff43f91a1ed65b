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
    sources: [
      "src/liveness/liveness.ts",
      "src/liveness/reference.ts",
      "src/liveness/stored.ts",
      "src/heal/execution/prove.ts",
    ],
    tests: ["test/liveness/*.test.ts", "test/heal/execution/prove.test.ts"],
  },
  { name: "ladder", sources: ["src/plan/ladder.ts"], tests: ["test/plan/ladder.test.ts"] },
  {
    name: "plan",
    sources: ["src/plan/plan.ts", "src/plan/policy.ts", "src/plan/order.ts", "src/plan/obstacles.ts"],
    tests: ["test/plan/*.test.ts"],
  },
  {
    name: "guards",
    sources: [
      "src/evidence/candidates.ts",
      "src/evidence/pod-presence.ts",
      "src/heal/execution/turns.ts",
      "src/heal/execution/storm-brake.ts",
    ],
    tests: [
      "test/evidence/candidates.test.ts",
      "test/evidence/cluster-holds.test.ts",
      "test/classes/guards.test.ts",
      "test/classes/left-behind.test.ts",
      "test/classes/pod-gone.test.ts",
      "test/classes/retention.test.ts",
      "test/heal/execution/probe-gate.test.ts",
      "test/heal/execution/storm-brake.test.ts",
      "test/heal/execution/turns.test.ts",
    ],
  },
  {
    name: "steps",
    sources: ["src/heal/steps/*.ts"],
    tests: [
      "test/heal/steps/*.test.ts",
      "test/heal/execution/run-action.test.ts",
      "test/heal/execution/followUps.test.ts",
    ],
  },
  {
    name: "quarantine",
    sources: [
      "src/heal/quarantine/quarantine.ts",
      "src/heal/quarantine/move-away.ts",
      "src/heal/journal/recover.ts",
      "src/heal/quarantine/undo.ts",
    ],
    tests: [
      "test/heal/quarantine/quarantine.test.ts",
      "test/heal/quarantine/quarantine-races.test.ts",
      "test/heal/quarantine/move-away.test.ts",
      "test/heal/journal/recover.test.ts",
      "test/heal/quarantine/undo.test.ts",
    ],
  },
  {
    name: "undo",
    sources: ["src/heal/quarantine/undo.ts", "src/heal/journal/recover.ts"],
    tests: [
      "test/heal/quarantine/undo.test.ts",
      "test/heal/quarantine/undo-races.test.ts",
      "test/heal/journal/recover.test.ts",
    ],
  },
  {
    name: "journal-recovery",
    sources: ["src/heal/journal/recover.ts", "src/heal/journal/unsettled.ts", "src/heal/journal/reader.ts"],
    tests: ["test/heal/journal/*.test.ts", "test/heal/execution/session.test.ts"],
  },
];
