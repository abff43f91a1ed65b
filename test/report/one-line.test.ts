import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { classes } from "../../src/classes/index.ts";
import type { NodeReport, ReportedFinding } from "../../src/report/node-report.ts";
import { oneLine } from "../../src/report/one-line.ts";
import { HEALTHY } from "../support/node-report.ts";

function found(classId: string, podName?: string): ReportedFinding {
  return {
    id: `${classId}/${podName}`,
    class: classId,
    kind: "ghost",
    severity: "critical",
    subject: { type: "sandbox", ...(podName === undefined ? {} : { pod: podOf(podName) }) },
    summary: "",
    evidence: [],
    blocks: podName === undefined ? [] : ["its name"],
    treatment: { automatic: true, reversible: true, steps: [] },
  };
}

function podOf(name: string) {
  return { namespace: "shop", name, uid: "u", attempt: 0 };
}

function lineOf(findings: readonly ReportedFinding[]): string {
  return oneLine({ ...HEALTHY, verdict: "ghosts", findings: [...findings] });
}

function many(number: number, classId: string): readonly ReportedFinding[] {
  return Array.from({ length: number }, () => found(classId));
}

test("a healthy node is OK", () => {
  expect(oneLine(HEALTHY)).toBe("OK: no ghosts among 1 sandbox, containerd 1.7.0");
});

describe("ghosts", () => {
  test.each([
    [
      "are counted by class, the most common first, with the blocked pods",
      [...many(3, "libcni-result-cache-corrupt"), ...many(8, "dead-after-crash"), found("dead-after-crash", "web-0")],
      "12 ghosts: 9 dead-after-crash, 3 libcni-result-cache-corrupt; web-0 blocked",
    ],
    ["of one finding are singular", [found("pod-gone", "web-0")], "1 ghost: 1 pod-gone; web-0 blocked"],
    ["that block no pod name none", many(2, "shim-leak"), "2 ghosts: 2 shim-leak"],
    [
      "of too many classes name the first of them and count the others",
      ["failed-rollback-unknown-sandbox", "hostlocal-ip-leak-after-reboot", "dead-after-crash"].map((id) => found(id)),
      "3 ghosts: 1 failed-rollback-unknown-sandbox, 2 more",
    ],
    [
      "that block more pods than there is room for name some of them",
      Array.from({ length: 20 }, (_, index) => found("dead-after-crash", `checkout-${index}`)),
      "20 ghosts: 20 dead-after-crash; checkout-0, checkout-1, 18 more blocked",
    ],
    [
      "that block pods of long names count them",
      ["a", "b"].map((letter) => found("multus-cache-consumed-rebuilt-config", letter.repeat(60))),
      "2 ghosts: 2 multus-cache-consumed-rebuilt-config; 2 pods blocked",
    ],
  ])("%s", (_, findings, line) => {
    expect(lineOf(findings)).toBe(line);
  });
});

describe("a node that could not be scanned", () => {
  const unknown = (problem: string): string =>
    oneLine({ ...HEALTHY, verdict: "unknown", problems: [{ source: "cri", problem }] });

  test("names the first failure, in whole words", () => {
    expect(unknown("cannot reach unix:///run/containerd/containerd.sock because nothing listens on it")).toBe(
      "unknown: cri: cannot reach unix:///run/containerd/containerd.sock because",
    );
  });

  test("never ends within a word, however long", () => {
    expect(unknown("x".repeat(200))).toBe("unknown: cri");
  });

  test("is reported even when the reason is unknown", () => {
    expect(oneLine({ ...HEALTHY, verdict: "unknown" })).toBe("unknown: scan failed");
  });
});

describe("any report", () => {
  const finding = fc
    .tuple(
      fc.constantFrom(...classes.map(({ id }) => id)),
      fc.option(fc.string({ unit: "grapheme", minLength: 1 }), { nil: undefined }),
    )
    .map(([id, name]) => found(id, name));
  const anyReport = fc
    .tuple(
      fc.constantFrom("healthy", "ghosts", "unknown"),
      fc.array(finding, { minLength: 1, maxLength: 300 }),
      fc.string({ unit: "binary", maxLength: 300 }),
      fc.nat(),
    )
    .map(
      ([verdict, findings, text, total]): NodeReport => ({
        ...HEALTHY,
        verdict,
        findings,
        runtime: { ...HEALTHY.runtime, version: text },
        problems: [{ source: "cri", problem: text }],
        sandboxes: { total, ready: 0, notReady: 0 },
      }),
    );

  test("is one line, not empty, and short enough", () => {
    fc.assert(
      fc.property(anyReport, (report) => {
        const line = oneLine(report);

        expect(Buffer.byteLength(line)).toBeLessThanOrEqual(80);
        expect(line).not.toMatch(/[\n\r]/);
        expect(line).toBe(line.trim());
        expect(line.length).toBeGreaterThan(0);
        expect(Buffer.from(line).toString()).toBe(line.toWellFormed());
      }),
    );
  });

  test("has class names complete or not at all", () => {
    fc.assert(
      fc.property(fc.array(finding, { minLength: 1, maxLength: 60 }), (findings) => {
        const [, named = ""] = /^\d+ ghosts?: (.*?)(?:;.*)?$/.exec(lineOf(findings)) ?? [];

        for (const part of named.split(", ")) {
          expect(["more", ...classes.map(({ id }) => id)]).toContain(part.replace(/^\d+ /, ""));
        }
      }),
    );
  });
});
