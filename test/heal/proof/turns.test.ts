import { describe, expect, test } from "vitest";
import { INTERRUPTED, uninterrupted } from "../../../src/heal/proof/fresh-facts.ts";
import { stormBrake } from "../../../src/heal/proof/storm-brake.ts";
import { reasonToPause, semaphore, turnKindOf, turns } from "../../../src/heal/proof/turns.ts";
import { RuntimeError } from "../../../src/runtime/errors.ts";

const DAEMON_DOWN = "dial unix /run/openvswitch/kube-ovn-daemon.sock: connect: connection refused";
const ID = "a".repeat(64);
const HANG_GUARD_MS = 60_000;

function opened({ patienceMs = HANG_GUARD_MS, mostUnanswered = 2, interruption = uninterrupted() } = {}) {
  const brake = stormBrake();
  const slots = semaphore({ slots: 8, patienceMs: HANG_GUARD_MS, mostAside: 1 });
  return { brake, turn: turns({ slots, brake, probes: { patienceMs, mostUnanswered }, interruption }) };
}

function refusedBy(text: string): () => Promise<void> {
  return () => Promise.reject(new RuntimeError("refused", "StopPodSandbox", text, ""));
}

const done = (): Promise<void> => Promise.resolve();

describe("turn at the runtime", () => {
  test("is granted while the storm brake is off", async () => {
    let calls = 0;
    const { turn } = opened();
    const call = (): Promise<void> => {
      calls += 1;
      return Promise.resolve();
    };
    expect([await turn(call), await turn(call, "no-plugins"), calls]).toEqual([undefined, undefined, 2]);
  });

  test("is refused with the reason once the storm brake is on", async () => {
    const { turn } = opened();
    for (let count = 0; count < 3; count++) await expect(turn(refusedBy(DAEMON_DOWN))).rejects.toThrow();
    let isCalled = false;
    const held = await turn(() => {
      isCalled = true;
      return Promise.resolve();
    });
    expect([held?.code, isCalled]).toEqual(["shared-cause", false]);
  });

  test("a success resets the count of consecutive failures", async () => {
    const { turn, brake } = opened();
    for (let count = 0; count < 2; count++) await expect(turn(refusedBy(DAEMON_DOWN))).rejects.toThrow();
    await turn(done);
    await expect(turn(refusedBy(DAEMON_DOWN))).rejects.toThrow();
    expect(brake.reason()).toBeUndefined();
  });

  test("an internal error does not count as a plugin failure", async () => {
    const { turn, brake } = opened();
    const mistake = Object.assign(new TypeError("a mistake"), { text: DAEMON_DOWN });
    for (let count = 0; count < 5; count++)
      await expect(turn(() => Promise.reject(mistake))).rejects.toThrow("mistake");
    expect(brake.reason()).toBeUndefined();
  });

  test("a call that needs plugins does not wait behind unanswered calls", async () => {
    const { turn } = opened({ patienceMs: 1, mostUnanswered: 1 });
    const hanging = Promise.withResolvers<void>();
    const first = turn(() => hanging.promise);
    expect((await turn(done))?.code).toBe("no-removal-answered");
    hanging.resolve();
    await first;
  });

  test("a call without plugins runs beside an unanswered call", async () => {
    const { turn } = opened();
    const hanging = Promise.withResolvers<void>();
    const first = turn(() => hanging.promise);
    let isCalled = false;
    await turn(() => {
      isCalled = true;
      return Promise.resolve();
    }, "no-plugins");
    expect(isCalled).toBe(true);
    hanging.resolve();
    await first;
  });

  test.each([
    ["calls-plugins", ["/var/lib/cni/results/cbr0-x-eth0"]],
    ["no-plugins", []],
  ])("the kind is %s when the result files of the sandbox are %j", async (kind, paths) => {
    expect(await turnKindOf(ID, { resultFiles: (id) => Promise.resolve(id === ID ? paths : ["/another"]) })).toBe(kind);
  });

  test("is refused when the run is stopping", async () => {
    const stop = AbortSignal.abort();
    const { turn } = opened({ interruption: { stop, giveUp: stop } });
    expect(await turn(() => Promise.reject(new Error("not to be called")))).toEqual(INTERRUPTED);
  });

  test("asks the storm brake only for calls that run plugins", () => {
    const { brake } = opened();
    brake.unanswered(7);
    expect(reasonToPause(uninterrupted(), brake)).toEqual({
      code: "no-removal-answered",
      text: expect.stringContaining("the first 7 removals") as unknown,
    });
    expect(reasonToPause(uninterrupted(), undefined)).toBeUndefined();
  });
});
