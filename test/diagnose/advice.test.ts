import { describe, expect, test } from "vitest";
import { classById } from "../../src/classes/index.ts";
import { adviceFor } from "../../src/diagnose/diagnose.ts";
import type { Finding } from "../../src/evidence/finding.ts";
import { snapshotOf } from "../support/snapshot-builder.ts";

function finding(id: string): Finding {
  expect(classById(id)?.id).toBe(id);
  return {
    id: `${id}/node`,
    class: id,
    severity: "warning",
    subject: { type: "node" },
    summary: "",
    evidence: [],
    blocks: [],
    treatment: { automatic: false, reversible: false, steps: [] },
    cure: [],
  };
}

function advice(runtimeName: string, runtimeVersion: string, ...classes: readonly string[]): readonly string[] {
  return adviceFor(snapshotOf({ runtimeName, runtimeVersion }), classes.map(finding));
}

const LEAK = "hostlocal-ip-leak-after-reboot";

describe("advice about the runtime", () => {
  test.each([
    ["containerd", "1.6.20", [], [/^containerd 1\.6\.20: a failing CNI DEL blocks .* From 1\.6\.37/]],
    ["containerd", "1.6.37", [], []],
    ["containerd", "1.6.37", [LEAK], [/removed without CNI DEL/]],
    ["containerd", "1.7.31", [LEAK], []],
    ["containerd", "1.7.31", ["libcni-result-cache-corrupt"], [/result file blocks .* 2\.0 and later tolerate/]],
    ["containerd", "2.0.5", [], [/keeps it from starting again/]],
    ["containerd", "2.1.7", ["record-leak-after-late-failure"], [/leaves its record behind/]],
    ["containerd", "2.3.4", [LEAK, "record-leak-after-late-failure"], []],
    ["containerd", "no version", [LEAK], []],
    ["cri-o", "1.33.3", [], [/^CRI-O 1\.33\.3: .* From 1\.32\.8, 1\.33\.4/]],
    ["cri-o", "1.31.0", [], [/^CRI-O/]],
    ["cri-o", "1.32.8", [], []],
    ["cri-o", "1.34.0", [], []],
    ["cri-o", "no version", [], []],
    ["docker", "1.6.20", [LEAK], []],
  ] as const)("%s %s with %j", (name, version, classes, expected) => {
    const given = advice(name, version, ...classes);

    expect(given).toHaveLength(expected.length);
    for (const [index, pattern] of expected.entries()) expect(given[index]).toMatch(pattern);
  });
});

test.each([
  ["clock-step-sandbox-attempt-reuse", /^kubelet: .* 1\.35/],
  ["multus-cache-corrupt", /^multus: .* 3\.9/],
  ["multus-cache-consumed-rebuilt-config", /retryDeleteOnError/],
  ["multus-lossy-conflist", /4\.2\.1 to 4\.3\.0/],
  ["multus-daemon-down-or-wedged", /4\.0\.2/],
])("%s has its matching advice, once", (id, pattern) => {
  const given = advice("containerd", "2.3.4", id, id);

  expect(given).toHaveLength(1);
  expect(given[0]).toMatch(pattern);
});
