import { describe, expect, test } from "vitest";
import { isContention, type StormBrake, stormBrake } from "../../../src/heal/proof/storm-brake.ts";

const DAEMON_DOWN =
  'plugin type="kube-ovn" failed (delete): dial unix /run/openvswitch/kube-ovn-daemon.sock: connect: connection refused';
const UNAUTHORIZED =
  'plugin type="calico" failed (delete): error getting ClusterInformation: connection is unauthorized: Unauthorized';
const CORRUPT =
  'failed to get network "cbr0" cached result: decoding version from network config: unexpected end of JSON input';
const XTABLES = 'plugin type="portmap" failed (delete): Another app is currently holding the xtables lock';
const UNMOUNTED = 'plugin type="loopback" failed (delete): unknown FS magic on "/var/run/netns/cni-1": 1021994';

/** The brake's reason after these failures; "ok" is a success. */
function after(...events: readonly string[]): string | undefined {
  return pausedAfter(...events)?.text;
}

function pausedAfter(...events: readonly string[]): ReturnType<StormBrake["reason"]> {
  const brake = stormBrake();
  for (const event of events) {
    if (event === "ok") brake.succeeded();
    else brake.failed(event);
  }
  return brake.reason();
}

describe("storm brake", () => {
  test.each([
    ["two failures of one cause", [DAEMON_DOWN, DAEMON_DOWN]],
    ["a success in between", [DAEMON_DOWN, DAEMON_DOWN, "ok", DAEMON_DOWN]],
    ["causes that differ", [DAEMON_DOWN, UNAUTHORIZED, DAEMON_DOWN, UNAUTHORIZED]],
    ["causes specific to each sandbox", [CORRUPT, CORRUPT, CORRUPT, CORRUPT]],
    ["a lock that is held briefly", [XTABLES, XTABLES, XTABLES, XTABLES]],
    ["a few calls without an answer", Array.from({ length: 15 }, () => "")],
  ])("is not tripped by %s", (_name, events) => {
    expect(after(...events)).toBeUndefined();
  });

  test("is tripped by three consecutive failures of one cause, and names the failed component", () => {
    const { code, text: reason } = pausedAfter("ok", DAEMON_DOWN, DAEMON_DOWN, DAEMON_DOWN) ?? {};
    expect(code).toBe("shared-cause");
    expect(reason).toContain("3 removals in a row");
    expect(reason).toContain("cni-daemon-socket-down");
    expect(reason).toContain("/run/openvswitch/kube-ovn-daemon.sock");
  });

  test("stays on for the rest of the run", () => {
    expect(after(DAEMON_DOWN, DAEMON_DOWN, DAEMON_DOWN, "ok")).toBeDefined();
  });

  test("leaves out the runtime's text about one sandbox", () => {
    const wrapped = `failed to stop sandbox "abc": failed to destroy network for sandbox "abc": ${DAEMON_DOWN}`;
    expect(after(wrapped, wrapped, wrapped)).not.toContain("abc");
  });

  test("quotes the innermost of several plugins that call each other", () => {
    const chained = `plugin type="multus" failed (delete): plugin type="kube-ovn" failed (delete): ${DAEMON_DOWN}`;
    expect(after(chained, chained, chained)).toMatch(/repaired: [^:]*kube-ovn-daemon\.sock/);
  });

  test("is tripped by many consecutive calls without an answer", () => {
    expect(pausedAfter(...Array.from({ length: 16 }, () => ""))).toEqual({
      code: "removals-unanswered",
      text: expect.stringContaining("not answered") as unknown,
    });
  });

  test("distinguishes contention from a permanent failure", () => {
    expect([XTABLES, UNMOUNTED, DAEMON_DOWN, CORRUPT, ""].map(isContention)).toEqual([true, true, false, false, false]);
  });

  test("keeps the reason for which it was tripped first", () => {
    const brake = stormBrake();
    const first = { code: "no-removal-answered", text: expect.stringContaining("the first 2 removals") as unknown };
    expect(brake.unanswered(2)).toEqual(first);
    expect(brake.unanswered(9)).toEqual(first);
    expect(brake.reason()).toEqual(first);
  });

  test("counts calls without an answer separately from failures of an unknown cause", () => {
    const silent = Array.from({ length: 15 }, () => "");
    expect(after(...silent, "something that no class knows")).toBeUndefined();
    expect(after(DAEMON_DOWN, DAEMON_DOWN, "", DAEMON_DOWN)).toBeUndefined();
  });
});
