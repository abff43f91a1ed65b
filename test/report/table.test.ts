import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import type { NodeReport, ReportedFinding } from "../../src/report/node-report.ts";
import { renderTable, type TableOptions } from "../../src/report/table.ts";
import { HEALTHY } from "../support/node-report.ts";

const PLAIN: TableOptions = { colour: false, columns: 100, verbose: false, titleOf: (id) => `title of ${id}` };

function ghost(name: string): ReportedFinding {
  return {
    id: `dead-after-crash/${name}`,
    class: "dead-after-crash",
    severity: "critical",
    subject: { type: "sandbox", sandboxId: "a".repeat(64), pod: { namespace: "shop", name, uid: "u", attempt: 2 } },
    summary: "it died with the node",
    evidence: [{ source: "cri", fact: `${name} is listed as NotReady` }],
    blocks: [`pod shop/${name}`],
    treatment: { automatic: true, reversible: false, steps: ["stop it", "Remove it."] },
  };
}

function ghosts(count: number): NodeReport {
  const findings = Array.from({ length: count }, (_, index) => ghost(`web-${index}`));
  return { ...HEALTHY, verdict: "ghosts", findings, sandboxes: { total: count, ready: 0, notReady: count } };
}

describe("the first line is the verdict", () => {
  test.each([
    [HEALTHY, "HEALTHY  no ghosts on worker-1 (containerd 1.7.0; 1 sandbox: 1 ready, 0 not ready)"],
    [ghosts(2), "GHOSTS  2 findings on worker-1 (containerd 1.7.0; 2 sandboxes: 0 ready, 2 not ready)"],
    [
      { ...HEALTHY, verdict: "unknown", runtime: { ...HEALTHY.runtime, reachable: false } } satisfies NodeReport,
      "UNKNOWN  cannot tell whether worker-1 has ghosts (runtime not reached)",
    ],
  ])("%#", (report, line) => {
    expect(renderTable(report, PLAIN).split("\n")[0]).toBe(line);
  });
});

test("a class shows its subjects, what they block, why, and the steps", () => {
  expect(
    renderTable(ghosts(1), PLAIN),
  ).toBe(`GHOSTS  1 finding on worker-1 (containerd 1.7.0; 1 sandbox: 0 ready, 1 not ready)

dead-after-crash  title of dead-after-crash (1)
  shop/web-0 (attempt 2)  aaaaaaaaaaaaa
    blocks pod shop/web-0
  Why: it died with the node
    cri: web-0 is listed as NotReady
  unghost would:
    1. Stop it.
    2. Remove it.
`);
});

test("more than a screenful is counted, and named with -v", () => {
  const report = ghosts(25);

  const brief = renderTable(report, PLAIN);
  const verbose = renderTable(report, { ...PLAIN, verbose: true });

  expect(brief).toContain("… and 15 more (-v names them)");
  expect(brief).not.toContain("web-10");
  expect(verbose).toContain("shop/web-24");
  expect(verbose).toContain("web-24 is listed as NotReady");
  expect(brief).toContain("    Of the first:\n    cri: web-0 is listed as NotReady\n");
  expect(verbose).not.toContain("Of the first");
});

test("what a person has to do is not promised", () => {
  const [finding] = ghosts(1).findings;
  if (finding === undefined) throw new Error("one was made");
  const manual = { ...finding, treatment: { ...finding.treatment, automatic: false } };

  expect(renderTable({ ...ghosts(1), findings: [manual] }, PLAIN)).toContain("A person has to:");
});

test("sources that could not be read come with the next step, as sentences", () => {
  const problems = [{ source: "cri", problem: "no runtime socket at /run/x", next: "start the runtime" }];

  expect(renderTable({ ...HEALTHY, problems }, PLAIN)).toContain(
    "Could not read\n  cri: no runtime socket at /run/x. Start the runtime.\n",
  );
});

test("what is left alone is grouped by reason", () => {
  const kept = ["a", "b", "c", "d"].map((name) => ({
    sandboxId: "b".repeat(64),
    pod: { namespace: "jobs", name, uid: "u", attempt: 0 },
    reason: "a finished pod",
  }));

  expect(renderTable({ ...HEALTHY, kept }, PLAIN)).toContain(
    "Left alone (4)\n  jobs/a, jobs/b, jobs/c and 1 more: a finished pod\n",
  );
});

describe("fits", () => {
  const report: NodeReport = {
    ...ghosts(3),
    advice: ["An upgrade of the runtime ends this class of failures for good, as far as anybody knows."],
    problems: [{ source: "logs", problem: "the journal may not be read by this user", next: "run unghost as root" }],
  };

  test.each([[24], [40], [80], [200]])("%i columns", (columns) => {
    for (const line of renderTable(report, { ...PLAIN, columns }).split("\n")) {
      if (line.trim().includes(" ")) expect(line.length, line).toBeLessThanOrEqual(columns);
    }
  });

  test("and breaks lines in the same places with colours", () => {
    const coloured = renderTable(report, { ...PLAIN, columns: 50, colour: true });

    expect(coloured).not.toBe(stripVTControlCharacters(coloured));
    expect(stripVTControlCharacters(coloured)).toBe(renderTable(report, { ...PLAIN, columns: 50 }));
  });
});

test("control characters of others stay out, wherever they come from", () => {
  const evil = "\u001b[2J\u009b1m\r\nHEALTHY\u202e";
  const pod = { namespace: evil, name: evil, uid: evil, attempt: 0 };
  const finding: ReportedFinding = {
    ...ghost(evil),
    subject: { type: "sandbox", sandboxId: evil, name: evil, pod, path: evil },
    summary: evil,
    evidence: [{ source: "cri", fact: evil }],
    blocks: [evil],
    treatment: { automatic: true, reversible: true, steps: [evil] },
  };
  const report: NodeReport = {
    ...HEALTHY,
    verdict: "ghosts",
    node: evil,
    runtime: { ...HEALTHY.runtime, name: evil, version: evil },
    findings: [finding],
    kept: [{ sandboxId: evil, pod, reason: evil }],
    problems: [{ source: "cri", problem: evil, next: evil }],
    advice: [evil],
  };

  const table = renderTable(report, PLAIN);

  expect(table).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u);
  expect(table).not.toMatch(/^HEALTHY/m);
});
