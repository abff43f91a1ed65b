import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { distributionOf } from "../../src/runtime/distributions.ts";
import { couldConcernSandboxes } from "../../src/snapshot/log-filter.ts";
import { readLogs } from "../../src/snapshot/logs.ts";
import { valueOr } from "../../src/snapshot/source.ts";

const TROUBLE = 'level=error msg="StopPodSandbox failed" error="failed to destroy network"';
const MOST_LINES = 2000;

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "unghost-logs-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

async function linesOf(log: string): Promise<readonly string[]> {
  const path = join(root, "var/log/containerd.log");
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, log);
  const distribution = distributionOf("/run/containerd/containerd.sock");
  const logs = await readLogs({ root, distribution, signal: AbortSignal.timeout(10_000) });
  return valueOr(logs, undefined)?.lines.map(({ text }) => text) ?? [];
}

describe("the lines of a log that may concern a sandbox", () => {
  test("are all that pass the filter, in their order, whatever else is between them", async () => {
    const line = fc.constantFrom(TROUBLE, `${TROUBLE} ü`, "", "level=info msg=hello", "netns");
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 30 }), fc.boolean(), async (lines, isTerminated) => {
        const log = lines.join("\n") + (isTerminated ? "\n" : "");
        expect(await linesOf(log)).toEqual(lines.filter(couldConcernSandboxes));
      }),
    );
  });

  test("are the newest ones of a flood", async () => {
    const flood = Array.from({ length: MOST_LINES + 500 }, (_, index) => `${TROUBLE} ${index}`);
    expect(await linesOf(flood.join("\n"))).toEqual(flood.slice(-MOST_LINES));
  });
});
