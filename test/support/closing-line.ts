import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";
import { cannotRunHere } from "./lab-tools.ts";

/**
 * Ends every run with one plain line for users and programs. An end-to-end test that is skipped on a machine that can
 * run it counts as failed, because it would go unnoticed.
 */
export default class ClosingLine implements Reporter {
  #isWholeRun = true;

  onInit({ config }: Vitest): void {
    // With a pattern, everything else is skipped on purpose.
    this.#isWholeRun = config.testNamePattern === undefined;
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const tally = { passed: 0, failed: errors.length, skipped: 0 };
    const unexcused: TestCase[] = [];
    for (const module of modules) {
      if (module.state() === "failed" && module.errors().length > 0) tally.failed += 1;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "pending") continue;
        tally[state] += 1;
        if (state === "skipped" && this.#isWholeRun && isUnexcused(test.project.name)) unexcused.push(test);
      }
    }
    if (unexcused.length > 0) {
      tally.failed += unexcused.length;
      tally.skipped -= unexcused.length;
      process.exitCode = 1;
      const names = unexcused.map(({ module, fullName }) => `  ${module.relativeModuleId} > ${fullName}\n`);
      process.stdout.write(`Skipped, though this machine can run end-to-end tests:\n${names.join("")}`);
    }
    const skipped = tally.skipped > 0 ? `, ${tally.skipped} skipped` : "";
    process.stdout.write(`${tally.passed} passed, ${tally.failed} failed${skipped}\n`);
  }
}

/** Unit tests may need a privilege; their title mentions it. */
function isUnexcused(project: string): boolean {
  return project !== "unit" && cannotRunHere() === undefined;
}
