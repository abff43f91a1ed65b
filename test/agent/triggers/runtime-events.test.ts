import { describe, expect, onTestFinished, test } from "vitest";
import { type SimulatedRuntime, startSimulated } from "../../../lab/simulated/runtime.ts";
import { followRuntime } from "../../../src/agent/triggers/runtime-events.ts";
import { openCri } from "../../../src/runtime/cri.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { type Hints, hints } from "./hints.ts";

const CALL = { timeoutMs: 30_000 };

/** A runtime that is followed until the test ends. */
async function followed(): Promise<{ readonly runtime: SimulatedRuntime; readonly seen: Hints }> {
  const dir = tempDir();
  const runtime = await startSimulated({ socket: dir.join("runtime.sock") });
  const seen = hints();
  const stop = new AbortController();
  const following = followRuntime({
    findSocket: () => Promise.resolve(runtime.socket),
    onHint: seen.onHint,
    signal: stop.signal,
  });
  onTestFinished(async () => {
    stop.abort();
    await following;
    await runtime.close();
    dir.remove();
  });
  return { runtime, seen };
}

describe("following the runtime", () => {
  test("hints at once when it answers, and again when it is back", async () => {
    const { runtime, seen } = await followed();

    expect((await seen.next("runtime answers")).urgency).toBe("now");
    await runtime.restart();
    await seen.next("runtime gone");

    expect((await seen.next("runtime answers")).urgency).toBe("now");
  });

  test("waits for a runtime that answers every call with not yet", async () => {
    const { runtime, seen } = await followed();
    await seen.next("runtime answers");
    runtime.script({ mode: "starting" });
    await runtime.restart();
    await seen.next("runtime gone");

    expect(seen.all).toEqual([]);
    runtime.script({ mode: "serving" });

    await seen.next("runtime answers");
  });

  test("hints when a container ends or goes; one that starts is no reason to look", async () => {
    const { runtime, seen } = await followed();
    await seen.next("runtime answers");
    const cri = openCri(runtime.socket);
    onTestFinished(() => cri.close());

    const metadata = { name: "pod", namespace: "default", uid: "uid", attempt: 0 };
    const id = await cri.runPodSandbox({ metadata }, CALL);
    await cri.stopPodSandbox(id, CALL);
    await seen.next("CRI container event");
    await cri.removePodSandbox(id, CALL);

    await seen.next("CRI container event");
  });

  test("ends when it is asked to, also while nobody answers", async () => {
    const stop = new AbortController();
    const following = followRuntime({
      findSocket: () => Promise.resolve("/nowhere/at/all.sock"),
      onHint: () => undefined,
      signal: stop.signal,
    });

    stop.abort();

    await expect(following).resolves.toBeUndefined();
  });
});
