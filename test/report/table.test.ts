import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import type { NodeReport, ReportedFinding } from "../../src/report/node-report.ts";
import { renderNames, renderTable, type TableOptions } from "../../src/report/table.ts";
import { HEALTHY } from "../support/node-report.ts";

const PLAIN: TableOptions = { colour: false, columns: 100, verbose: false, titleOf: (id) => `title of ${id}` };

const POD = { namespace: "jobs", name: "job", uid: "u", attempt: 0 };

function ghost(name: string): ReportedFinding {
  return {
    id: `dead-after-crash/${name}`,
    class: "dead-after-crash",
    severity: "critical",
    subject: { type: "sandbox", sandboxId: "a".repeat(64), pod: { namespace: "shop", name, uid: "u", attempt: 2 } },
    summary: "it died with the node",
    evidence: [{ source: "cri", fact: `${name} is listed as NotReady` }],
    blocks: [`pod shop/${name}`],
    kind: "ghost",
    since: "2025-12-31T23:46:00.000Z",
    blockedPods: [{ namespace: "shop", name }],
    treatment: { automatic: true, reversible: false, steps: ["stop it", "Remove it."] },
  };
}

function ghosts(count: number): NodeReport {
  const findings = Array.from({ length: count }, (_, index) => ghost(`web-${index}`));
  return { ...HEALTHY, verdict: "ghosts", findings, sandboxes: { total: count, ready: 0, notReady: count } };
}

describe("the first line is the verdict", () => {
  test.each([
    [HEALTHY, "HEALTHY  no ghosts on worker-1 · 1 sandbox, 1 ready · containerd 1.7.0"],
    [ghosts(2), "GHOSTS  2 ghosts on worker-1 · 2 pods blocked · containerd 1.7.0"],
    [
      { ...HEALTHY, verdict: "unknown", runtime: { ...HEALTHY.runtime, reachable: false } } satisfies NodeReport,
      "UNKNOWN  could not determine whether there are ghosts on worker-1 · runtime not reached",
    ],
  ])("%#", (report, line) => {
    expect(
      renderTable(report, PLAIN)
        .split("\n")[0]
        ?.replace(/ · pods .*/, ""),
    ).toBe(line);
  });

  test("a blocked node is reported above it", () => {
    const podCreation = { able: "no", blockedPods: [{ namespace: "shop", name: "web-9" }] } as const;

    const [first, second] = renderTable(
      { ...ghosts(1), podCreation: { ...podCreation, blockedPods: [...podCreation.blockedPods] } },
      PLAIN,
    ).split("\n");

    expect(first).toBe("NO PODS START  this node cannot create pods; waiting: shop/web-9");
    expect(second).toMatch(/^GHOSTS {2}1 ghost on worker-1 · 2 pods blocked/);
  });

  test("counts ghosts, leaks and others separately", () => {
    const leak = { ...ghost("a"), kind: "leak" as const, blockedPods: [] };
    const other = { ...ghost("b"), kind: "other" as const, blockedPods: [] };

    const [first] = renderTable({ ...ghosts(2), findings: [...ghosts(2).findings, leak, other] }, PLAIN).split("\n");

    expect(first).toMatch(/^GHOSTS {2}2 ghosts, 1 leak, 1 other finding on worker-1 · 2 pods blocked/);
  });
});

describe("table rows", () => {
  test("show which findings heal leaves alone", () => {
    const plan = {
      steps: [],
      reason: "kubelet is alive and may be recovering it right now",
      code: "kubelet-recovering",
    };
    const manual = { steps: [], reason: "manual", code: "needs-consent" };
    const findings = [
      ghost("a"),
      { ...ghost("b"), plan },
      { ...ghost("c"), plan: manual, treatment: { ...ghost("c").treatment, automatic: false } },
    ];

    const table = renderTable({ ...ghosts(3), findings }, PLAIN);

    expect(table.match(/\b(?:auto|left|manual)$/gm)).toEqual(["auto", "left", "manual"]);
  });

  test("are one line per ghost, in natural order, with the next command below", () => {
    const leak: ReportedFinding = {
      ...ghost("x"),
      id: "hostlocal-ip-leak-after-reboot/10.0.0.9",
      class: "hostlocal-ip-leak-after-reboot",
      kind: "leak",
      severity: "warning",
      subject: { type: "file", path: "/var/lib/cni/networks/n/10.0.0.9" },
      since: "2025-12-31T22:00:00.000Z",
      blockedPods: [],
      blockedAddresses: 3,
      treatment: { automatic: false, reversible: true, steps: [] },
    };
    const findings = [leak, ghost("web-10"), ghost("web-2")];
    const kept = [{ sandboxId: "b".repeat(64), pod: POD, reason: "a finished pod", code: "pod-finished" }];

    expect(renderTable({ ...ghosts(2), findings, kept }, { ...PLAIN, screenColumns: 100 })).toBe(`\
GHOSTS  2 ghosts, 1 leak on worker-1 · 2 pods blocked · containerd 1.7.0
  pods not checked against Kubernetes
SEV   WHAT         CLASS                           AGE  BLOCKS     HEAL
crit  shop/web-2   dead-after-crash                14m  pod start  auto
crit  shop/web-10  dead-after-crash                14m  pod start  auto
warn  10.0.0.9     hostlocal-ip-leak-after-reboot  2h   3 IPs      manual
1 kept on purpose (finished pod).   Next: unghost heal --dry-run
Manual steps, details: unghost scan -v
`);
  });

  test("of leaks that differ in nothing but their names share a line, under LEAKS", () => {
    const leaks = [9, 8, 7, 6].map(
      (last): ReportedFinding => ({
        ...ghost(`${last}`),
        id: `hostlocal-ip-leak-after-reboot/10.0.0.${last}`,
        class: "hostlocal-ip-leak-after-reboot",
        kind: "leak",
        subject: { type: "file", path: `/var/lib/cni/networks/n/10.0.0.${last}`, sandboxId: "b".repeat(64) },
        blockedPods: [],
        blockedAddresses: 1,
      }),
    );

    const lines = renderTable({ ...ghosts(0), verdict: "ghosts", findings: leaks }, PLAIN).split("\n");

    expect(lines[0]).toMatch(/^LEAKS {2}4 leaks on worker-1/);
    expect(lines.filter((line) => line.includes("10.0.0."))).toEqual([
      "crit  10.0.0.6, 10.0.0.7, 10.0.0.8, +1  hostlocal-ip-leak-after-reboot  14m  4 IPs   auto",
    ]);
  });

  test("name the waiting pod when the sandbox being created has no name yet", () => {
    const findings = [{ ...ghost("stuck"), subject: { type: "sandbox" as const, sandboxId: "a".repeat(64) } }];

    expect(renderTable({ ...ghosts(1), findings }, { ...PLAIN, screenColumns: 100 })).toMatch(/^crit +shop\/stuck /m);
  });

  test("of 3 ghosts take at most 10 lines, at every width", () => {
    for (const screenColumns of [40, 60, 80, 200]) {
      const lines = renderTable(ghosts(3), { ...PLAIN, columns: screenColumns, screenColumns })
        .trimEnd()
        .split("\n");
      expect(lines.length, lines.join("\n")).toBeLessThanOrEqual(10);
      for (const name of ["shop/web-0", "shop/web-1", "shop/web-2"]) expect(lines.join("\n")).toContain(name);
    }
  });

  test("of 500 ghosts in 40 classes are grouped into at most 30 lines, and complete with --all", () => {
    const findings = Array.from({ length: 500 }, (_, index) => ({
      ...ghost(`web-${index}`),
      class: `class-${index % 40}`,
    }));
    const report = { ...ghosts(500), findings };

    const grouped = renderTable(report, { ...PLAIN, screenColumns: 80, columns: 80 });
    const all = renderTable(report, { ...PLAIN, all: true });

    expect(grouped.trimEnd().split("\n").length).toBeLessThanOrEqual(30);
    expect(grouped).toContain("GHOSTS  500 ghosts on worker-1");
    expect(grouped).toMatch(/^crit {2}13 +class-0 /m);
    expect(grouped).toMatch(/… and \d+ findings of 24 more groups/);
    expect(grouped).toContain("unghost scan --all");
    expect(all.match(/^crit /gm)).toHaveLength(500);
  });

  test("are complete in a pipe, however long a name is", () => {
    const name = "a-very-long-name-of-a-pod-".repeat(8);
    const report = { ...ghosts(1), findings: [ghost(name)] };

    expect(renderTable(report, PLAIN)).toContain(`shop/${name}  dead-after-crash`);
    expect(renderTable(report, { ...PLAIN, screenColumns: 80 })).not.toContain(name);
  });

  test("have sandbox id, path and number of evidence lines with -o wide; -o name prints ids", () => {
    const report = ghosts(1);

    expect(renderTable(report, { ...PLAIN, wide: true, noHeaders: true })).toMatch(
      /^crit {2}shop\/web-0 {2}dead-after-crash {2}14m {2}pod start {2}auto {2}a{13} {2}- {2}1$/m,
    );
    expect(renderNames(report)).toBe("dead-after-crash/web-0\n");
  });
});

describe("details with -v", () => {
  test("show for every finding what it blocks, why, the evidence, and the steps", () => {
    const verbose = renderTable(ghosts(25), { ...PLAIN, verbose: true });

    expect(verbose).toContain(`dead-after-crash  title of dead-after-crash (25)
  All 25:
    Why: it died with the node
  shop/web-0 (attempt 2)  aaaaaaaaaaaaa
    blocks pod shop/web-0
    cri: web-0 is listed as NotReady
`);
    expect(verbose.match(/Why:/g)).toHaveLength(1);
    expect(verbose).toContain("web-24 is listed as NotReady");
    expect(verbose).toContain("  unghost heal runs:\n    1. Stop it.\n    2. Remove it.\n");
    expect(renderTable(ghosts(1), PLAIN)).not.toContain("is listed as NotReady");
  });

  test("show the plan of heal instead of the general steps of the class, for those alike once", () => {
    const report = ghosts(3);
    const plans = [
      { steps: ["save its logs and remove it"], reason: "it holds no container", code: "no-container" },
      { steps: [], reason: "it is opted out by unghost.dev/ignore", code: "opted-out" },
      { steps: ["save its logs and remove it"], reason: "it holds no container", code: "no-container" },
    ];
    const findings = report.findings.map((finding, index) => ({ ...finding, plan: plans[index] }));

    const verbose = renderTable({ ...report, findings }, { ...PLAIN, verbose: true });

    expect(verbose).toContain(`
    cri: web-2 is listed as NotReady
    unghost heal runs for these 2:
      1. Save its logs and remove it.
      Reason: it holds no container.
  shop/web-1 (attempt 2)  aaaaaaaaaaaaa
`);
    expect(verbose).toContain("\n    unghost heal leaves it alone: it is opted out by unghost.dev/ignore\n");
    expect(verbose.match(/unghost heal runs/g)).toHaveLength(1);
    expect(verbose).not.toContain("Stop it");
  });

  test("do not promise manual steps", () => {
    const [finding] = ghosts(1).findings;
    if (finding === undefined) throw new Error("one was made");
    const manual = { ...finding, treatment: { ...finding.treatment, automatic: false } };
    const report = { ...ghosts(1), findings: [manual] };

    expect(renderTable(report, { ...PLAIN, verbose: true })).toContain("Manual steps:");
    expect(renderTable(report, PLAIN)).toMatch(/ manual$/m);
    expect(renderTable(report, PLAIN)).not.toContain("unghost heal");
  });

  test("group kept sandboxes by reason", () => {
    const kept = ["a", "b"].map((name) => ({
      sandboxId: "b".repeat(64),
      pod: { ...POD, name },
      reason: "a finished pod",
    }));

    expect(renderTable({ ...HEALTHY, kept }, { ...PLAIN, verbose: true })).toContain(
      "Kept on purpose (2)\n  jobs/a, jobs/b: a finished pod\n",
    );
  });
});

test("kept sandboxes are counted by reason", () => {
  const kept = ["pod-finished", "pod-finished", "opted-out"].map((code) => ({
    sandboxId: "b".repeat(64),
    pod: POD,
    reason: "in words",
    code,
  }));

  expect(renderTable({ ...HEALTHY, kept }, PLAIN)).toContain("3 kept on purpose (2 finished pod, 1 opted out).\n");
});

test("unreadable sources are listed with the next step, as sentences", () => {
  const problems = [{ source: "cri", problem: "no runtime socket at /run/x", next: "start the runtime" }];

  expect(renderTable({ ...HEALTHY, problems }, PLAIN)).toContain(
    "Could not read\n  cri: no runtime socket at /run/x. Start the runtime.\n",
  );
});

describe("the table fits into", () => {
  const report: NodeReport = {
    ...ghosts(3),
    advice: ["An upgrade of the runtime ends this class of failures for good, as far as anybody knows."],
    problems: [{ source: "logs", problem: "the journal may not be read by this user", next: "run unghost as root" }],
  };

  test.each([[24], [40], [80], [200]])("%i columns", (columns) => {
    for (const line of renderTable(report, { ...PLAIN, columns, screenColumns: columns }).split("\n")) {
      if (line.trim().includes(" ")) expect(line.length, line).toBeLessThanOrEqual(columns);
    }
  });

  test("the same line breaks with colours", () => {
    const coloured = renderTable(report, { ...PLAIN, columns: 50, screenColumns: 50, colour: true });

    expect(coloured).not.toBe(stripVTControlCharacters(coloured));
    expect(stripVTControlCharacters(coloured)).toBe(renderTable(report, { ...PLAIN, columns: 50, screenColumns: 50 }));
  });
});

test("control characters are escaped everywhere", () => {
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

  const table = renderTable(report, PLAIN) + renderTable(report, { ...PLAIN, verbose: true, wide: true });

  expect(table).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u);
  expect(table).not.toMatch(/^HEALTHY/m);
});

test("a scan of some classes says nothing about sandboxes that other classes would explain", () => {
  const kept = [
    { sandboxId: "a".repeat(64), pod: POD, reason: "dead-after-crash was not asked for", code: "class-not-selected" },
  ];

  const [verdict] = renderTable({ ...HEALTHY, kept }, PLAIN).split("\n");

  expect(verdict).toMatch(/^HEALTHY {2}no ghosts of the selected classes on worker-1 · /);
});
