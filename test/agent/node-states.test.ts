import { describe, expect, test } from "vitest";
import { conditionOf } from "../../src/agent/kube/condition.ts";
import { publishedChange } from "../../src/agent/kube/event-content.ts";
import { STATE_METRICS } from "../../src/agent/metrics/state-metrics.ts";
import { pageVerdict, triesInWords } from "../../src/agent/page/verdict.ts";
import type { AgentEvent, Sighting, Standing } from "../../src/agent/state/state.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { oneLine } from "../../src/report/one-line.ts";
import { renderTable } from "../../src/report/table.ts";
import { freshState, scanOf } from "./metrics/agent-state.ts";
import { onTheWire, sighting } from "./page/agent-states.ts";

const TABLE = { colour: false, columns: 200, verbose: false, titleOf: (id: string) => id };
const LEAK = { kind: "leak", blocks: [], blockedPods: [] } as const;
const FAILING = [
  { reason: "removal-failing", since: "2026-03-01T11:00:00.000Z", reported: [], pod: { namespace: "a", name: "b" } },
] as const satisfies NodeReport["pending"];

function found(...parts: readonly Partial<Sighting["finding"]>[]): readonly Sighting[] {
  return parts.map((part, index) => {
    const one = sighting({ pod: `web-${index}` });
    return { ...one, finding: { ...one.finding, ...part } };
  });
}

interface Row {
  readonly state: string;
  readonly report?: Partial<NodeReport>;
  readonly sightings?: readonly Sighting[];
  readonly cli: RegExp;
  readonly line: RegExp;
  readonly page: ReturnType<typeof pageVerdict>["headline"];
  readonly tone: ReturnType<typeof pageVerdict>["tone"];
  readonly condition: readonly [string, string, RegExp];
}

const ROWS: readonly Row[] = [
  {
    state: "healthy",
    cli: /^HEALTHY {2}no ghosts on node/,
    line: /^OK: no ghosts/,
    page: "Healthy",
    tone: "good",
    condition: ["False", "NoGhostSandboxes", /^No ghost/],
  },
  {
    state: "ghosts",
    report: { verdict: "ghosts" },
    sightings: found({}, { kind: "leak" }),
    cli: /^GHOSTS {2}1 ghost, 1 leak on node/,
    line: /^1 ghost, 1 leak: /,
    page: "1 ghost, 1 leak",
    tone: "busy",
    condition: ["True", "GhostSandboxesPresent", /^1 ghost, 1 leak: /],
  },
  {
    state: "leaks",
    report: { verdict: "ghosts" },
    sightings: found(LEAK, LEAK),
    cli: /^LEAKS {2}2 leaks on node/,
    line: /^2 leaks: /,
    page: "2 leaks",
    tone: "busy",
    condition: ["True", "LeaksPresent", /^2 leaks: /],
  },
  {
    state: "findings",
    report: { verdict: "ghosts" },
    sightings: found({ kind: "other" }),
    cli: /^FINDINGS {2}1 finding on node/,
    line: /^1 finding: /,
    page: "1 finding",
    tone: "busy",
    condition: ["True", "GhostSandboxesPresent", /^1 finding: /],
  },
  {
    state: "degraded",
    report: { verdict: "degraded", pending: [...FAILING] },
    cli: /^DEGRADED {2}no ghosts on node, but 1 failure reported/,
    line: /^degraded: 1 removal-failing/,
    page: "Degraded",
    tone: "bad",
    condition: ["True", "PodsBlocked", /^1 removal-failing/],
  },
  {
    state: "no-pods-start",
    report: {
      verdict: "degraded",
      pending: [{ ...FAILING[0], reason: "creation-failing" }],
      podCreation: { able: "no", blockedPods: [{ namespace: "a", name: "b" }] },
    },
    cli: /^NO PODS START {2}this node cannot create pods; waiting: a\/b/,
    line: /; no pods start$/,
    page: "No pods start",
    tone: "bad",
    condition: ["True", "PodsBlocked", /^This node cannot create pods; /],
  },
  {
    state: "no-pods-start",
    report: { verdict: "ghosts", podCreation: { able: "no", blockedPods: [] } },
    sightings: found({}),
    cli: /^NO PODS START {2}this node cannot create pods\nGHOSTS {2}1 ghost on node/,
    line: /^1 ghost: /,
    page: "No pods start",
    tone: "bad",
    condition: ["True", "GhostSandboxesPresent", /^This node cannot create pods; 1 ghost: /],
  },
  {
    state: "unknown",
    report: { verdict: "unknown", problems: [{ source: "cri", problem: "refused" }] },
    cli: /^UNKNOWN {2}could not determine whether there are ghosts on node/,
    line: /^unknown: cri: refused/,
    page: "Unknown",
    tone: "unsure",
    condition: [
      "Unknown",
      "NodeUnreadable",
      /^The last scan could not determine whether there are ghosts: cri: refused/,
    ],
  },
];

describe("command line, one line, page, condition and metric agree", () => {
  test.each(ROWS)("$state: $cli", ({ state: name, report = {}, sightings = [], ...expected }) => {
    const findings = sightings.map(({ finding }) => finding);
    const scan = scanOf({ report: { ...report, findings }, endedAtMs: 0 });
    const state = freshState({ node: "node", scan, sightings: sightings.map((one) => ({ ...one })) });

    const page = pageVerdict(onTheWire(state));
    const condition = conditionOf(state, 0);

    expect(renderTable(scan.report, TABLE)).toMatch(expected.cli);
    expect(oneLine(scan.report)).toMatch(expected.line);
    expect([page.headline, page.tone]).toEqual([expected.page, expected.tone]);
    const [status, reason, message] = expected.condition;
    expect(condition).toEqual({ status, reason, message: expect.stringMatching(message) });
    const samples = STATE_METRICS.find((metric) => metric.name === "unghost_node_state")?.samples(state, 0) ?? [];
    expect(samples.filter(({ value }) => value === 1).map(({ labels }) => labels["state"])).toEqual([name]);
  });
});

const NEXT = "2026-03-01T12:30:00Z";
const FAILED = { times: 2, lastAt: "2026-03-01T12:00:00Z", reason: "plugin refused" };

interface Try {
  readonly standing: Standing;
  readonly failed: boolean;
  /** The same sentence everywhere. */
  readonly words?: string;
  readonly column: string;
  readonly metrics: readonly [failed: number, givenUp: number, nextTry: number];
}

const TRIES: readonly Try[] = [
  { standing: { kind: "waiting", message: "soon" }, failed: false, column: "auto", metrics: [0, 0, 0] },
  { standing: { kind: "healing" }, failed: false, column: "auto", metrics: [0, 0, 0] },
  { standing: { kind: "observed", message: "by policy" }, failed: false, column: "auto", metrics: [0, 0, 0] },
  {
    standing: { kind: "waiting", message: "it was treated a short while ago" },
    failed: true,
    words: `failed 2×, next try at ${NEXT}`,
    column: "failed 2×",
    metrics: [1, 0, Date.parse(NEXT) / 1000],
  },
  {
    standing: { kind: "given-up", message: "2 attempts did not heal it", next: "restart the plugin" },
    failed: true,
    words: `failed 2×, given up, next try at ${NEXT}`,
    column: "given up",
    metrics: [0, 1, Date.parse(NEXT) / 1000],
  },
];

describe("command line, page, condition, event and metric know how often a heal failed, and what follows", () => {
  test.each(TRIES)("$standing.kind, failed: $failed", ({ standing, failed, words, column, metrics }) => {
    const plain = sighting({ standing });
    const nextTryAt = failed ? new Date(NEXT) : undefined;
    const finding = failed ? { ...plain.finding, failedHeals: FAILED } : plain.finding;
    const seen: Sighting = { ...plain, finding, nextTryAt };
    const scan = scanOf({ report: { verdict: "ghosts", findings: [finding] }, endedAtMs: 0 });
    const state = freshState({ scan, sightings: [seen] });
    const retry = { nextTryAt: NEXT, givenUp: standing.kind === "given-up" };
    const reported = failed ? { ...finding, failedHeals: { ...FAILED, ...retry } } : finding;

    const table = renderTable({ ...scan.report, findings: [reported] }, TABLE);
    const wire = onTheWire(state).sightings.map(triesInWords);
    const condition = conditionOf(state, 0)?.message ?? "";
    const event = publishedChange({ kind: "given-up", sighting: seen } satisfies AgentEvent)?.message ?? "";

    expect(table).toMatch(new RegExp(` ${column}\n`));
    expect(wire).toEqual([words]);
    expect(table.includes(`shop/web-0 ${words}: plugin refused`)).toBe(failed);
    expect(condition.includes("failed 2×")).toBe(failed);
    if (words !== undefined && standing.kind !== "given-up") expect(condition).toContain(words);
    if (standing.kind === "given-up") expect(event).toContain(`${words?.replace("failed", "Failed")}.`);
    const valueOf = (name: string) =>
      STATE_METRICS.find((metric) => metric.name === name)
        ?.samples(state, 0)
        .reduce((sum, { value }) => sum + value, 0);
    expect(
      ["unghost_findings_failed", "unghost_findings_given_up", "unghost_next_try_timestamp_seconds"].map(valueOf),
    ).toEqual(metrics);
  });

  test("a failed heal's event has the number of failures, with this one", () => {
    const one = sighting();
    const seen = { ...one, finding: { ...one.finding, failedHeals: FAILED } };
    const { finding } = seen;
    const record = {
      at: new Date(0),
      finding: finding.id,
      class: finding.class,
      summary: finding.summary,
      outcome: "failed",
      reason: "plugin refused",
      seconds: 1,
    } as const;

    expect(publishedChange({ kind: "heal-failed", record, sighting: seen })?.message).toContain("(failed 3×)");
  });
});

test("a page whose last scan failed is not green", () => {
  const state = freshState({ scan: scanOf(), scanFailure: "out of memory" });

  expect(pageVerdict(onTheWire(state))).toMatchObject({ tone: "unsure", headline: "Unknown" });
});
