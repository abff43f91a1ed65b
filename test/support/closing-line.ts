import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";
import { cannotRunHere } from "./lab-tools.ts";

/** For the last lines of a log that a message ends with. */
const MESSAGE_CHARACTERS = 4000;

/**
 * Ends every run with one plain line for users and programs, after the tests that failed, in the first try or in all:
 * often only the end of a log is kept. An end-to-end test that is skipped on a machine that can run it counts as failed,
 * because it would go unnoticed.
 */
export default class ClosingLine implements Reporter {
  #isWholeRun = true;

  onInit({ config }: Vitest): void {
    // With a pattern, everything else is skipped on purpose.
    this.#isWholeRun = config.testNamePattern === undefined;
  }

  onTestRunEnd(modules: readonly TestModule[], outside: readonly unknown[]): void {
    const tally = { passed: 0, failed: outside.length, skipped: 0 };
    const unexcused: TestCase[] = [];
    const notable: string[] = [];
    for (const module of modules) {
      if (module.state() === "failed" && module.errors().length > 0) tally.failed += 1;
      for (const test of module.children.allTests()) {
        const { state, errors } = test.result();
        if (state === "pending") continue;
        tally[state] += 1;
        const reported = `${titleOf(test)}: ${errors?.map(({ message }) => message).join("; ")}`.slice(
          0,
          MESSAGE_CHARACTERS,
        );
        if (state === "failed") notable.push(`Failed: ${reported}`);
        else if (test.diagnostic()?.flaky === true) notable.push(`Passed at the second try only: ${reported}`);
        if (state === "skipped" && this.#isWholeRun && isUnexcused(test.project.name)) unexcused.push(test);
      }
    }
    if (unexcused.length > 0) {
      tally.failed += unexcused.length;
      tally.skipped -= unexcused.length;
      process.exitCode = 1;
      const names = unexcused.map((test) => `  ${titleOf(test)}\n`);
      process.stdout.write(`Skipped, though this machine can run end-to-end tests:\n${names.join("")}`);
    }
    for (const line of notable) process.stdout.write(`${line}\n`);
    const skipped = tally.skipped > 0 ? `, ${tally.skipped} skipped` : "";
    process.stdout.write(`${tally.passed} passed, ${tally.failed} failed${skipped}\n`);
  }
}

function titleOf({ module, fullName }: TestCase): string {
  return `${module.relativeModuleId} > ${fullName}`;
}

/** Unit tests may need a privilege; their title mentions it. */
function isUnexcused(project: string): boolean {
  return project !== "unit" && cannotRunHere() === undefined;
}
