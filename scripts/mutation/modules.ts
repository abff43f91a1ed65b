import { globSync } from "node:fs";

/** A safety-critical part of unghost, and the unit tests that have to kill its mutants. */
export interface MutatedModule {
  readonly name: string;
  readonly sources: readonly string[];
  /** Matched by `sources`, but not mutated here: part of another module, or only text and types. */
  readonly except?: readonly string[];
  readonly tests: readonly string[];
}

export function sourcesOf({ sources, except = [] }: MutatedModule): readonly string[] {
  return filesOf(sources).filter((file) => !except.includes(file));
}

export function testsOf({ tests }: MutatedModule): readonly string[] {
  return filesOf(tests);
}

function filesOf(patterns: readonly string[]): readonly string[] {
  return [...new Set(patterns.flatMap((pattern) => globSync(pattern)))].toSorted();
}

/** The list for `make mutation`. Code that only renders a decision as text is left out. */
export const MODULES: readonly MutatedModule[] = [
  {
    name: "liveness",
    sources: ["src/evidence/liveness.ts", "src/heal/proof/prove.ts"],
    tests: ["test/evidence/{liveness,reference,stored}*.test.ts", "test/heal/proof/prove.test.ts"],
  },
  { name: "ladder", sources: ["src/plan/ladder.ts"], tests: ["test/plan/ladder.test.ts"] },
  { name: "plan", sources: ["src/plan/*.ts"], except: ["src/plan/ladder.ts"], tests: ["test/plan/*.test.ts"] },
  {
    name: "guards",
    sources: [
      "src/evidence/candidates.ts",
      "src/evidence/pod-presence.ts",
      "src/heal/proof/turns.ts",
      "src/heal/proof/storm-brake.ts",
    ],
    tests: [
      "test/evidence/candidates.test.ts",
      "test/evidence/{cluster-holds,pod-presence}.test.ts",
      "test/classes/guards.test.ts",
      "test/classes/left-behind.test.ts",
      "test/classes/pod-gone.test.ts",
      "test/classes/retention.test.ts",
      "test/heal/proof/probe-first.test.ts",
      "test/heal/proof/semaphore.test.ts",
      "test/heal/proof/storm-brake.test.ts",
      "test/heal/proof/turns.test.ts",
    ],
  },
  {
    name: "steps",
    sources: ["src/heal/steps/*.ts", "src/host/poll.ts"],
    except: ["src/heal/steps/cni-exec.ts"],
    tests: [
      "test/heal/steps/*.test.ts",
      "test/host/poll.test.ts",
      "test/heal/proof/run-action.test.ts",
      "test/heal/proof/follow-ups.test.ts",
      "test/heal/proof/node-ready.test.ts",
    ],
  },
  {
    name: "quarantine",
    sources: ["src/heal/quarantine/{inventory,move-away,quarantine}.ts"],
    tests: ["test/heal/quarantine/*.test.ts", "test/heal/journal/recover.test.ts"],
  },
  {
    name: "undo",
    sources: ["src/heal/quarantine/undo.ts"],
    tests: [
      "test/heal/quarantine/{undo,undo-races,undo-refusals,quarantine-races}.test.ts",
      "test/heal/journal/recover.test.ts",
    ],
  },
  {
    name: "journal-recovery",
    sources: [
      "src/heal/session.ts",
      "src/heal/journal/reader.ts",
      "src/heal/quarantine/recover.ts",
      "src/heal/journal/unsettled.ts",
      "src/heal/journal/reader.ts",
    ],
    tests: ["test/heal/journal/*.test.ts", "test/heal/proof/{session,earlier-runs}.test.ts"],
  },
];
