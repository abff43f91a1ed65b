import { describe, expect, test, vi } from "vitest";
import { agentMetrics } from "../../../src/agent/metrics/agent-metrics.ts";
import { type AgentEvent, type AgentState, type HealRecord, REFUSAL_REASONS } from "../../../src/agent/state/state.ts";
import { openStore } from "../../../src/agent/state/store.ts";
import { classes } from "../../../src/classes/index.ts";
import { freshState, NO_COUNTS, scanOf, sightingOf } from "./agent-state.ts";
import { namesIn, seriesIn } from "./exposition.ts";

/** The metrics of the design, and later additions. */
const CONTRACT = [
  "unghost_blocked_pods",
  "unghost_build_info",
  "unghost_circuit_breaker_open",
  "unghost_cni_cache_files",
  "unghost_cni_files_synced_total",
  "unghost_cni_queue",
  "unghost_cni_sync_seconds_bucket",
  "unghost_cni_sync_seconds_count",
  "unghost_cni_sync_seconds_sum",
  "unghost_crash_restarts_total",
  "unghost_finding_age_seconds_max",
  "unghost_findings",
  "unghost_findings_failed",
  "unghost_findings_given_up",
  "unghost_findings_observed",
  "unghost_heal_duration_seconds_bucket",
  "unghost_heal_duration_seconds_count",
  "unghost_heal_duration_seconds_sum",
  "unghost_heals_total",
  "unghost_kernel_stalls_total",
  "unghost_last_scan_timestamp_seconds",
  "unghost_leftover_containers",
  "unghost_next_try_timestamp_seconds",
  "unghost_node_state",
  "unghost_pending",
  "unghost_pod_creation",
  "unghost_refusals_total",
  "unghost_sandboxes",
  "unghost_scan_duration_seconds_bucket",
  "unghost_scan_duration_seconds_count",
  "unghost_scan_duration_seconds_sum",
  "unghost_scans_failed_total",
  "unghost_verdict",
  "unghost_volume_attachments_stuck",
];

async function rendered(state: AgentState, events: readonly AgentEvent[] = []): Promise<string> {
  const store = openStore(state);
  const metrics = agentMetrics(store, { process: false });
  for (const event of events) store.publish(event);
  const clock = vi.spyOn(performance, "now").mockReturnValue(60_000);
  return await metrics.render().finally(() => clock.mockRestore());
}

async function series(state: AgentState, events: readonly AgentEvent[] = []): Promise<ReadonlyMap<string, number>> {
  return seriesIn(await rendered(state, events));
}

describe("metrics at start", () => {
  test("contain every metric of the contract, except for networks, which are unknown yet", async () => {
    expect([...namesIn(await rendered(freshState()))].toSorted()).toEqual(CONTRACT);
  });

  test("contain findings, age, given-up count and each result of every class at 0", async () => {
    const start = await series(freshState());

    for (const { id } of classes) {
      expect(start.get(`unghost_findings{class="${id}"}`)).toBe(0);
      expect(start.get(`unghost_finding_age_seconds_max{class="${id}"}`)).toBe(0);
      expect(start.get(`unghost_findings_given_up{class="${id}"}`)).toBe(0);
      for (const result of ["healed", "failed", "skipped", "refused"]) {
        expect(start.get(`unghost_heals_total{class="${id}",result="${result}"}`)).toBe(0);
      }
    }
  });

  test.each(REFUSAL_REASONS)("count refusals for %s from 0", async (reason) => {
    expect((await series(freshState())).get(`unghost_refusals_total{reason="${reason}"}`)).toBe(0);
  });

  test("are all 0 except for the build", async () => {
    const start = await series(freshState());

    const notZero = [...start].filter(([, value]) => value !== 0).map(([name]) => name);

    expect(notZero).toEqual(['unghost_build_info{version="1.2.3"}']);
  });
});

describe("metrics from the state", () => {
  test("count a pod that is blocked for two reasons once, and none that is only to be removed", async () => {
    const pod = (name: string) => ({ namespace: "default", name });
    const findings = [{ ...sightingOf("pod-gone", 0).finding, blockedPods: [pod("a"), pod("b")] }];
    const pending = [
      { reason: "creation-failing" as const, pod: pod("b"), since: "", reported: [] },
      { reason: "removal-failing" as const, pod: pod("c"), since: "", reported: [] },
      { reason: "creation-in-flight" as const, pod: pod("d"), since: "", reported: [] },
    ];
    const podCreation = { able: "no" as const, blockedPods: [pod("b"), pod("e")] };
    const scan = scanOf({ endedAtMs: 0, report: { findings, pending, podCreation } });

    expect((await series(freshState({ scan }))).get("unghost_blocked_pods")).toBe(3);
  });

  test("count and age findings by class", async () => {
    const sightings = [sightingOf("pod-gone", 10_000), sightingOf("pod-gone", 50_000), sightingOf("shim-leak", 59_000)];

    const seen = await series(freshState({ sightings }));

    expect(seen.get('unghost_findings{class="pod-gone"}')).toBe(2);
    expect(seen.get('unghost_finding_age_seconds_max{class="pod-gone"}')).toBe(50);
    expect(seen.get('unghost_finding_age_seconds_max{class="shim-leak"}')).toBe(1);
  });

  test("drop a finding that is gone", async () => {
    const store = openStore(freshState({ sightings: [sightingOf("pod-gone")] }));
    const metrics = agentMetrics(store, { process: false });
    await metrics.render();

    store.update((state) => ({ ...state, sightings: [] }));

    expect(seriesIn(await metrics.render()).get('unghost_findings{class="pod-gone"}')).toBe(0);
  });

  test("distinguish given-up findings from those being healed", async () => {
    const givenUp = sightingOf("pod-gone", 0, { kind: "given-up", message: "three attempts", next: "restart it" });

    const seen = await series(freshState({ sightings: [givenUp, sightingOf("pod-gone")] }));

    expect(seen.get('unghost_findings_given_up{class="pod-gone"}')).toBe(1);
  });

  test("show the totals in counters, however often they are read", async () => {
    const totals = {
      heals: new Map([["pod-gone healed", 3]]),
      refusals: new Map([["budget", 2] as const]),
      crashRestarts: 7,
      kernelStalls: 1,
      scans: 9,
      scansFailed: 4,
      cniFilesSynced: 12,
    };
    const metrics = agentMetrics(openStore(freshState({ totals })), { process: false });
    await metrics.render();

    const again = seriesIn(await metrics.render());

    expect(again.get('unghost_heals_total{class="pod-gone",result="healed"}')).toBe(3);
    expect(again.get('unghost_refusals_total{reason="budget"}')).toBe(2);
    expect(again.get("unghost_crash_restarts_total")).toBe(7);
    expect(again.get("unghost_kernel_stalls_total")).toBe(1);
    expect(again.get("unghost_scans_failed_total")).toBe(4);
    expect(again.get("unghost_cni_files_synced_total")).toBe(12);
  });

  test("show verdict, time, sandboxes and counts of a scan", async () => {
    const scan = scanOf({
      report: { verdict: "ghosts", sandboxes: { total: 12, ready: 10, notReady: 2 } },
      counts: {
        ...NO_COUNTS,
        cacheFiles: [{ kind: "multus", state: "empty", count: 5 }],
        cniQueue: 2,
        leftoverContainers: 3,
        volumeAttachmentsStuck: 1,
      },
    });

    const seen = await series(freshState({ scan, breaker: { open: true } }));

    expect(seen.get('unghost_verdict{verdict="ghosts"}')).toBe(1);
    expect(seen.get('unghost_verdict{verdict="healthy"}')).toBe(0);
    expect(seen.get("unghost_last_scan_timestamp_seconds")).toBe(Date.parse("2026-03-01T12:01:00Z") / 1000);
    expect(seen.get('unghost_sandboxes{state="ready"}')).toBe(10);
    expect(seen.get('unghost_sandboxes{state="not_ready"}')).toBe(2);
    expect(seen.get('unghost_cni_cache_files{kind="multus",state="empty"}')).toBe(5);
    expect(seen.get('unghost_cni_cache_files{kind="result",state="empty"}')).toBe(0);
    expect(seen.get("unghost_cni_queue")).toBe(2);
    expect(seen.get("unghost_leftover_containers")).toBe(3);
    expect(seen.get("unghost_volume_attachments_stuck")).toBe(1);
    expect(seen.get("unghost_circuit_breaker_open")).toBe(1);
  });
});

describe("metrics from events", () => {
  const record: HealRecord = {
    at: new Date("2026-03-01T12:00:00Z"),
    finding: "pod-gone/a",
    class: "pod-gone",
    summary: "a sandbox is stuck",
    outcome: "healed",
    seconds: 2,
  };

  test("observe the duration of each scan, sync and heal, successful or not", async () => {
    const seen = await series(freshState(), [
      { kind: "scanned", seconds: 0.3 },
      { kind: "cni-files-synced", seconds: [0.007, 0.2] },
      { kind: "healed", record },
      { kind: "heal-failed", record: { ...record, outcome: "failed", seconds: 40 } },
    ]);

    expect(seen.get("unghost_scan_duration_seconds_count")).toBe(1);
    expect(seen.get('unghost_scan_duration_seconds_bucket{le="0.25"}')).toBe(0);
    expect(seen.get('unghost_scan_duration_seconds_bucket{le="0.5"}')).toBe(1);
    expect(seen.get("unghost_heal_duration_seconds_sum")).toBe(42);
    expect(seen.get('unghost_cni_sync_seconds_bucket{le="0.01"}')).toBe(1);
    expect(seen.get("unghost_cni_sync_seconds_count")).toBe(2);
  });

  test("observe nothing after close", async () => {
    const store = openStore(freshState());
    const metrics = agentMetrics(store, { process: false });

    metrics.close();
    store.publish({ kind: "scanned", seconds: 1 });

    expect(seriesIn(await metrics.render()).get("unghost_scan_duration_seconds_count")).toBe(0);
  });
});

test("rendered once a change, however often they are asked for", async () => {
  const store = openStore(freshState());
  const { render } = agentMetrics(store, { process: true });

  const [first, again] = [render(), render()];
  store.update((state) => ({ ...state, sightings: [sightingOf("pod-gone")] }));
  const changed = render();

  expect(again).toBe(first);
  expect(seriesIn(await changed).get('unghost_findings{class="pod-gone"}')).toBe(1);
});

test("the agent's own memory and CPU are exported only on request", async () => {
  const own = ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds"];
  const withThem = seriesIn(await agentMetrics(openStore(freshState()), { process: true }).render());

  for (const name of own) expect(withThem.get(name)).toBeGreaterThan(0);
  expect(await rendered(freshState())).not.toContain("process_");
});
