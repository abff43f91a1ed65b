import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { until } from "../../../lab/poll.ts";
import { serverStream, unary } from "../../../lab/simulated/handlers.ts";
import { type SimulatedRuntime, startSimulated } from "../../../lab/simulated/runtime.ts";
import { type SocketServer, socketServer } from "../../../lab/simulated/server.ts";
import { followRuntime } from "../../../src/agent/triggers/runtime-events.ts";
import { openCri } from "../../../src/runtime/cri.ts";
import {
  ContainerEventResponse,
  GetEventsRequest,
  VersionRequest,
  VersionResponse,
} from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { type Hints, hints } from "./hints.ts";

const CALL = { timeoutMs: 30_000 };

const HANG_GUARD_MS = 30_000;

/** A runtime that is followed until the test ends. */
async function followed(): Promise<{ readonly runtime: SimulatedRuntime; readonly seen: Hints }> {
  const dir = tempDir();
  const runtime = await startSimulated({ socket: dir.join("runtime.sock") });
  onTestFinished(async () => {
    await runtime.close();
    dir.remove();
  });
  return { runtime, seen: follow(runtime.socket) };
}

function follow(socket: string): Hints {
  const seen = hints();
  const stop = new AbortController();
  const following = followRuntime({
    findSocket: () => Promise.resolve(socket),
    onHint: seen.onHint,
    signal: stop.signal,
  });
  onTestFinished(async () => {
    stop.abort();
    await following;
  });
  return seen;
}

interface Crio {
  readonly server: SocketServer;
  readonly seen: Hints;
  /** How often it was probed. */
  readonly asked: () => number;
}

/** A runtime with CRI only, followed until the test ends; its event stream is empty, and ends orderly on request. */
async function followedCrio(endOfStream: () => Promise<void>): Promise<Crio> {
  const dir = tempDir();
  let asked = 0;
  const version = unary(VersionRequest, VersionResponse, () => {
    asked += 1;
    return VersionResponse.fromPartial({ runtimeName: "cri-o" });
  });
  const events = serverStream(GetEventsRequest, ContainerEventResponse, async function* () {
    await endOfStream();
    yield* [];
  });
  const server = socketServer(
    dir.join("crio.sock"),
    new Map([
      ["/runtime.v1.RuntimeService/Version", version],
      ["/runtime.v1.RuntimeService/GetContainerEvents", events],
    ]),
  );
  await server.listen();
  onTestFinished(async () => {
    await server.kill();
    dir.remove();
  });
  return { server, seen: follow(dir.join("crio.sock")), asked: () => asked };
}

describe("following the runtime", () => {
  test("hints at once when it answers, and again when it is back", async () => {
    const { runtime, seen } = await followed();

    expect((await seen.next("runtime answers")).urgency).toBe("now");
    await runtime.restart();
    await seen.next("runtime gone");

    expect((await seen.next("runtime answers")).urgency).toBe("now");
  });

  test('waits for a runtime that answers every call with "not ready yet"', async () => {
    const { runtime, seen } = await followed();
    await seen.next("runtime answers");
    runtime.script({ mode: "starting" });
    await runtime.restart();
    await seen.next("runtime gone");

    expect(seen.all).toEqual([]);
    runtime.script({ mode: "serving" });

    await seen.next("runtime answers");
  });

  test("hints when a container stops or is deleted, and not when one starts", async () => {
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

  test("hints once when the stream ends at once, and again when the runtime was restarted between two scans", async () => {
    const { server, seen, asked } = await followedCrio(() => Promise.resolve());

    await seen.next("runtime answers");
    await until("a third question", HANG_GUARD_MS, () => (asked() >= 3 ? true : undefined));
    expect(seen.all).toEqual([]);
    await server.kill();
    await server.listen();

    await seen.next("runtime gone");
    await seen.next("runtime answers");
  });

  test("treats the orderly end of a served stream as the end of the runtime", async () => {
    const { seen } = await followedCrio(() => sleep(1500));
    await seen.next("runtime answers");

    await seen.next("runtime gone");
  });

  test("ends when it is stopped, even while the runtime does not answer", async () => {
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
