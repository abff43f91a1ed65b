import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { attachmentsIn, type Traces } from "../../src/heal/cni-attachments.ts";

const LEFT = "f".repeat(64);
const A = "a".repeat(64);
const NOTHING: Traces = { ids: [], resultNames: [], leases: [] };

function valid(traces: Partial<Traces>, network = "cbr0"): readonly string[] {
  const attachments = attachmentsIn(network, LEFT, { ...NOTHING, ...traces });
  return attachments.map(({ containerID, ifname }) => `${containerID} ${ifname}`).toSorted();
}

describe("attachments that GC must keep", () => {
  test.each<readonly [string, Partial<Traces>, readonly string[]]>([
    ["an id of the runtime, by the usual interface", { ids: [A] }, [`${A} eth0`]],
    ["a lease", { leases: [{ id: "x", interfaceName: "net1" }] }, ["x eth0", "x net1"]],
    ["a lease without interface", { leases: [{ id: "x", interfaceName: "" }] }, ["x ", "x eth0"]],
    ["a cached result", { resultNames: [`cbr0-${A}-net1`] }, [`${A} eth0`, `${A} net1`]],
    ["an interface known from another network", { resultNames: [`other-${A}-net1`] }, [`${A} eth0`, `${A} net1`]],
  ])("include %s", (_what, traces, expected) => {
    expect(valid(traces)).toEqual(expected);
  });

  test("include every way to read a result's name, for ids and interfaces may hold dashes", () => {
    expect(valid({ resultNames: ["cbr0-default-abc-my-if"] })).toEqual(
      expect.arrayContaining(["default abc-my-if", "default-abc my-if", "default-abc-my if"]),
    );
  });

  test("do not include the sandbox that is left behind, whoever names it", () => {
    const leases = [{ id: LEFT, interfaceName: "eth0" }];
    expect(valid({ ids: [LEFT, A], leases, resultNames: [`cbr0-${LEFT}-eth0`] })).toEqual([`${A} eth0`]);
  });

  test("include every attachment that libcni has cached, whatever its names", () => {
    const name = fc.stringMatching(/^[a-z0-9][a-z0-9_.-]{0,20}$/);
    const interfaceName = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,14}$/);
    fc.assert(
      fc.property(name, name, interfaceName, (network, id, ifname) => {
        expect(valid({ resultNames: [`${network}-${id}-${ifname}`] }, network)).toContain(`${id} ${ifname}`);
      }),
    );
  });
});
