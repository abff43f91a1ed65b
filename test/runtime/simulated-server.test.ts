import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type CallContext, type Handler, serverStream, unary } from "../../lab/simulated/handlers.ts";
import { socketServer } from "../../lab/simulated/server.ts";
import { GrpcError, GrpcStatus } from "../../src/runtime/errors.ts";
import { VersionRequest, VersionResponse } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { openChannel } from "../../src/runtime/grpc.ts";
import { collect } from "../support/collect.ts";
import { tempDir } from "../support/temp-dir.ts";

/** Only a hang guard. */
const BOUNDS = { timeoutMs: 30_000 };

const version = {
  path: "/test.Service/Call",
  encode: (text: string) => VersionRequest.encode({ version: text }).finish(),
  decode: (bytes: Uint8Array) => VersionResponse.decode(bytes).version,
};

const cleanUps: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

async function serving(handler: Handler) {
  const dir = tempDir();
  const server = socketServer(dir.join("s.sock"), new Map([[version.path, handler]]));
  await server.listen();
  const channel = openChannel(dir.join("s.sock"));
  cleanUps.push(
    () => channel.close(),
    () => server.kill(),
    () => dir.remove(),
  );
  return { channel, server };
}

function versionOf(text: string): VersionResponse {
  return VersionResponse.fromPartial({ version: text });
}

/** A handler that waits for its signal, and reports when it was aborted. */
function patient() {
  const started = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<void>();
  const handler = unary(VersionRequest, VersionResponse, async (_request, { signal }: CallContext) => {
    signal.addEventListener("abort", () => aborted.resolve());
    started.resolve();
    await aborted.promise;
    return versionOf("too late");
  });
  return { handler, started: started.promise, aborted: aborted.promise };
}

describe("the simulated runtime's server", () => {
  const complaints: unknown[] = [];
  const complain = (error: unknown): void => void complaints.push(error);

  beforeEach(() => {
    complaints.length = 0;
    process.on("unhandledRejection", complain);
    cleanUps.push(() => void process.off("unhandledRejection", complain));
  });

  test("answers calls concurrently", async () => {
    const { channel } = await serving(
      unary(VersionRequest, VersionResponse, async (request) => {
        await sleep(Math.random() * 10);
        return versionOf(request.version);
      }),
    );
    const texts = Array.from({ length: 50 }, (_, index) => `call ${index}`);

    expect(await Promise.all(texts.map((text) => channel.unary(version, text, BOUNDS)))).toEqual(texts);
  });

  test("answers Unimplemented without a handler", async () => {
    const { channel } = await serving(unary(VersionRequest, VersionResponse, () => versionOf("")));

    const call = channel.unary({ ...version, path: "/test.Service/Other" }, "", BOUNDS);

    await expect(call).rejects.toMatchObject({ cause: { status: GrpcStatus.unimplemented } });
  });

  test.each([
    ["of gRPC unchanged", new GrpcError(7, "100 % näh\n"), { status: 7, message: "100 % näh\n" }],
    ["of any other kind as Unknown", new Error("oops"), { status: 2, message: "Error: oops" }],
  ])("returns an error %s, before and after the first message", async (_what, failure, expected) => {
    const { channel } = await serving(
      serverStream(VersionRequest, VersionResponse, async function* (request) {
        if (request.version === "late") yield versionOf("one");
        throw failure;
      }),
    );

    for (const when of ["early", "late"]) {
      await expect(collect(channel.stream(version, when, BOUNDS))).rejects.toMatchObject({ cause: expected });
    }
  });

  test("notifies a handler that its client's deadline has passed", async () => {
    const { handler, aborted } = patient();
    const { channel } = await serving(handler);

    const call = channel.unary(version, "", { timeoutMs: 50 });

    await expect(call).rejects.toMatchObject({ cause: { status: GrpcStatus.deadlineExceeded } });
    await aborted;
  });

  test("notifies a handler that its client disconnected, and no other", async () => {
    const { handler, started, aborted } = patient();
    const { channel } = await serving(handler);
    const controller = new AbortController();
    const call = channel.unary(version, "", { ...BOUNDS, signal: controller.signal });
    const given = expect(call).rejects.toMatchObject({ cause: { status: GrpcStatus.cancelled } });
    await started;

    controller.abort();

    await given;
    await aborted;
    expect(complaints).toEqual([]);
  });

  test("survives a client that cancels a stream faster than it can be sent", async () => {
    const long = "x".repeat(1_000_000);
    const ended = Promise.withResolvers<void>();
    const { channel } = await serving(
      serverStream(VersionRequest, VersionResponse, async function* () {
        try {
          while (true) yield versionOf(long);
        } finally {
          ended.resolve();
        }
      }),
    );

    for await (const text of channel.stream(version, "", BOUNDS)) {
      expect(text).toBe(long);
      break;
    }

    await ended.promise;
    expect(complaints).toEqual([]);
  });

  test("can be killed in the middle of a call and listen again", async () => {
    const { handler, started } = patient();
    const { channel, server } = await serving(handler);
    const failed = expect(channel.unary(version, "", BOUNDS)).rejects.toThrow();
    await started;

    await server.kill();
    await failed;
    await server.listen();

    await expect(channel.unary(version, "", BOUNDS)).resolves.toBe("too late");
    expect(complaints).toEqual([]);
  });
});
