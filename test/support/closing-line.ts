import type { Reporter, TestModule } from "vitest/node";

/** Ends every run with one plain line that any reader, person or machine, understands. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const tally = { passed: 0, failed: errors.length, skipped: 0 };
    for (const module of modules) {
      if (module.state() === "failed" && module.errors().length > 0) tally.failed += 1;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state !== "pending") tally[state] += 1;
      }
    }
    const skipped = tally.skipped > 0 ? `, ${tally.skipped} skipped` : "";
    process.stdout.write(`${tally.passed} passed, ${tally.failed} failed${skipped}\n`);
  }
}
