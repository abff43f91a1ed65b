import { describe, expect, test } from "vitest";
import type { NodeReport } from "../../src/report/node-report.ts";
import { renderSummary } from "../../src/report/table.ts";
import { HEALTHY } from "../support/node-report.ts";

const OPTIONS = { colour: false, columns: 100, verbose: false };
const SILENT = { source: "kubernetes", problem: "the API server did not answer in time" };

const HEALED: NodeReport = {
  ...HEALTHY,
  actions: [{ finding: "dead-after-crash/a", action: "remove-sandbox", outcome: "healed", seconds: 0.1 }],
  remaining: [],
};

const REFUSED = {
  finding: "dead-after-crash/b",
  action: "remove-sandbox",
  outcome: "refused",
  reason: "it is Ready",
  seconds: 0.1,
} as const;

describe("heal summary", () => {
  test.each<readonly [string, NodeReport, RegExp]>([
    ["all is healed", HEALED, /^HEALED {2}1 healed, nothing left on worker-1\n/],
    [
      "something is left",
      { ...HEALED, verdict: "ghosts", remaining: ["x/y"] },
      /^NOT ALL HEALED {2}1 healed, 1 finding/,
    ],
    [
      "what was refused is gone as well",
      { ...HEALED, actions: [...(HEALED.actions ?? []), REFUSED] },
      /^HEALED {2}1 healed, 1 not by this run, nothing left on worker-1\n/,
    ],
    [
      "all was refused, and is gone",
      { ...HEALED, actions: [REFUSED] },
      /^NOTHING LEFT {2}1 finding gone on worker-1, none healed by this run\n/,
    ],
    ["something could not be read", { ...HEALED, verdict: "unknown" }, /^UNKNOWN {2}1 healed, could not determine/],
  ])("starts with: %s", (_, report, headline) => {
    expect(renderSummary(report, OPTIONS)).toMatch(headline);
  });

  test("names each cause once, how often it failed, and what explains it", () => {
    const failed = (id: string) => ({
      finding: `del-fails/${id}`,
      action: "stop-sandbox",
      outcome: "failed" as const,
      reason: `failed to destroy network for sandbox "${id.repeat(64)}": plugin's socket is gone`,
      seconds: 0.1,
    });
    const report: NodeReport = {
      ...HEALTHY,
      verdict: "ghosts",
      findings: ["a", "b", "c", "d"].map((id) => leftPod(id)),
      actions: [...["a", "b", "c", "d"].map(failed), REFUSED],
      remaining: [...["a", "b", "c", "d"].map((id) => `del-fails/${id}`), REFUSED.finding],
    };

    const lines = renderSummary(report, { ...OPTIONS, columns: 300 }).split("\n");

    expect(lines.slice(1, 4)).toEqual([
      `  4 findings: shop/a, shop/b, shop/c, … (failed 2 times): failed to destroy network for sandbox "${"a".repeat(64)}": plugin's socket is gone`,
      String.raw`    What it means: unghost explain 'failed to destroy network for sandbox "${"a".repeat(64)}": plugin'\''s socket is gone'`,
      "  dead-after-crash/b: it is Ready",
    ]);
  });

  test("offers undo only when something can be put back", () => {
    const [action] = HEALED.actions ?? [];
    if (action === undefined) throw new Error("one was made");

    expect(renderSummary(HEALED, OPTIONS)).toMatch(/\nWhat was done: unghost history\n$/);
    expect(renderSummary({ ...HEALED, actions: [{ ...action, undo: ["j1", "j2"] }] }, OPTIONS)).toContain(
      "2 files can be put back: unghost undo ID",
    );
  });

  test("contains the directory of saved logs", () => {
    const [action] = HEALED.actions ?? [];
    if (action === undefined) throw new Error("one was made");
    const saved = { ...action, logsSavedTo: "/var/lib/unghost/quarantine/j1" };

    expect(renderSummary({ ...HEALED, actions: [saved] }, OPTIONS)).toContain("Logs: /var/lib/unghost/quarantine\n");
  });

  test("lists what could not be read, if anything", () => {
    expect(renderSummary({ ...HEALED, problems: [SILENT] }, OPTIONS)).toContain(
      "Could not read\n  kubernetes: the API server did not answer in time.\n",
    );
    expect(renderSummary(HEALED, OPTIONS)).not.toContain("Could not read");
  });
});

function leftPod(name: string): NodeReport["findings"][number] {
  return {
    id: `del-fails/${name}`,
    class: "del-fails",
    severity: "critical",
    subject: { type: "sandbox", sandboxId: name.repeat(64), pod: { namespace: "shop", name, uid: "u", attempt: 0 } },
    summary: "",
    evidence: [],
    blocks: [],
    treatment: { automatic: true, reversible: false, steps: [] },
    failedHeals: { times: 2, lastAt: "2024-01-31T10:15:30.000Z" },
  };
}
