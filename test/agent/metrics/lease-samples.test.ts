import { describe, expect, test } from "vitest";
import { leaseSamples, MAX_NETWORKS } from "../../../src/agent/metrics/state-metrics.ts";
import type { LeaseCount } from "../../../src/agent/state/state.ts";

function used(network: string, count = 1): LeaseCount {
  return { network, state: "used", count };
}

describe("leaseSamples", () => {
  test("a network of unknown range has no sample of free addresses, instead of 0", () => {
    expect(leaseSamples([used("cbr0", 4)])).toEqual([
      { labels: { network: "cbr0", state: "used" }, value: 4 },
      { labels: { network: "cbr0", state: "leaked" }, value: 0 },
    ]);
  });

  test("free addresses are exported when they were counted, including 0", () => {
    const samples = leaseSamples([used("cbr0", 254), { network: "cbr0", state: "free", count: 0 }]);

    expect(samples).toContainEqual({ labels: { network: "cbr0", state: "free" }, value: 0 });
  });

  test.each([
    { networks: MAX_NETWORKS, shown: MAX_NETWORKS },
    { networks: MAX_NETWORKS + 1, shown: MAX_NETWORKS },
    { networks: 5000, shown: MAX_NETWORKS },
  ])("$networks networks become $shown, without losing an address", ({ networks, shown }) => {
    const samples = leaseSamples(Array.from({ length: networks }, (_, index) => used(`net-${index}`)));

    expect(new Set(samples.map(({ labels }) => labels["network"])).size).toBe(shown);
    expect(samples.reduce((total, { value }) => total + value, 0)).toBe(networks);
  });
});
