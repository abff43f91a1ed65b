import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { journalOf } from "../../bench/explain.ts";
import { answersIn } from "../../src/diagnose/explain/lines.ts";

const HEAP_MB = 40;
const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

describe("a journal that is longer than the memory", () => {
  let directory = "";
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "unghost-journal-"));
  });
  afterAll(() => {
    rmSync(directory, { recursive: true });
  });

  test(`is explained in a heap of ${HEAP_MB} MB, record by record`, () => {
    const path = join(directory, "journal.log");
    writeFileSync(path, journalOf(1.5 * HEAP_MB * 1_048_576));

    const run = spawnSync(process.execPath, [`--max-old-space-size=${HEAP_MB}`, main, "explain", path], {
      encoding: "utf8",
      env: {},
    });

    expect(run.stderr).toBe("");
    expect(run.stdout.replaceAll(/\s+/gu, " ")).toContain(
      "Removal of this sandbox fails; the network plugin kube-ovn answers:",
    );
    expect(run.status).toBe(1);
  }, 120_000);
});

test("the time to explain a journal is linear in its length", () => {
  const part = journalOf(524_288);
  const whole = part.repeat(8);
  cheapest(() => answersIn(part));

  // Eight times the text: linear means eight times the time, quadratic 64. The factor allows for a noisy machine.
  expect(cheapest(() => answersIn(whole))).toBeLessThan(cheapest(() => answersIn(part)) * 8 * 4);
});

/** Microseconds of this thread's own CPU time, so that other processes do not count. */
function cheapest(run: () => unknown): number {
  const times = [1, 2, 3].map(() => {
    const start = process.threadCpuUsage();
    run();
    const { user, system } = process.threadCpuUsage(start);
    return user + system;
  });
  return Math.min(...times);
}
