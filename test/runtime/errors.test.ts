import { execFile } from "node:child_process";
import { chmodSync, linkSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type SimulatedRuntime, startSimulated } from "../../lab/simulated/runtime.ts";
import { openCri } from "../../src/runtime/cri.ts";
import { GrpcError, GrpcStatus, RuntimeError, toRuntimeError } from "../../src/runtime/errors.ts";
import type { CallOptions } from "../../src/runtime/grpc.ts";
import { listenRaw } from "../support/socket-servers.ts";
import { tempDir } from "../support/temp-dir.ts";

/** Only a hang guard; calls that are meant to time out have their own timeout. */
const CALL = { timeoutMs: 30_000 };

let dir: ReturnType<typeof tempDir>;
const cleanUps: (() => Promise<void>)[] = [];

beforeEach(() => {
  dir = tempDir();
});

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  dir.remove();
});

async function simulated(): Promise<SimulatedRuntime> {
  const runtime = await startSimulated({ socket: dir.join("cri.sock") });
  cleanUps.push(() => runtime.close());
  return runtime;
}

async function raw(onConnection: Parameters<typeof listenRaw>[1]): Promise<string> {
  const path = dir.join("raw.sock");
  const server = await listenRaw(path, onConnection);
  cleanUps.push(() => server.close());
  return path;
}

/** The error of a call to that socket. */
async function failureAt(path: string, options: CallOptions = CALL): Promise<RuntimeError> {
  const cri = openCri(path);
  try {
    await cri.version(options);
  } catch (error) {
    if (error instanceof RuntimeError) return error;
    throw error;
  } finally {
    cri.close();
  }
  throw new Error(`the call to ${path} was answered`);
}

describe("no server", () => {
  const places: [string, () => string | Promise<string>, RegExp][] = [
    ["no socket", () => dir.join("none.sock"), /^no runtime socket at .*none\.sock$/],
    ["a plain file", plainFile, /plain is not a socket$/],
    ["a directory", () => dir.path, /is not a socket$/],
    ["a path through a file", () => join(plainFile(), "cri.sock"), /^no runtime socket at /],
    ["a socket that a dead runtime left", staleSocket, /^connection refused at .*stale\.sock: no process listens$/],
    ["a server that closes at once", () => raw((socket) => socket.destroy()), /raw\.sock hung up$/],
    ["a server that closes on the first bytes", () => raw(closeOnData), /raw\.sock hung up$/],
    ["a web server", () => raw(answerHttp1), /^the server at .*raw\.sock is not a gRPC server$/],
  ];

  test.each(places)("%s is unreachable, with one sentence and the next step", async (_what, place, sentence) => {
    const failure = await failureAt(await place());

    expect(failure.kind).toBe("unreachable");
    expect(failure.message).toMatch(sentence);
    expect(failure.message).toContain(dir.path);
    expect(failure.next).toMatch(/^[A-Z].*\.$/);
  });

  test("a runtime that is still loading its records is unreachable, with its own text", async () => {
    const runtime = await simulated();
    runtime.script({ mode: "starting" });

    const failure = await failureAt(runtime.socket);

    expect(failure.kind).toBe("unreachable");
    expect(failure.message).toContain("server is not initialized yet");
  });

  describe.skipIf(process.getuid?.() !== 0)("as another user (needs root)", () => {
    test.each([
      ["a socket", () => dir.join("cri.sock")],
      ["a socket in a directory", () => dir.join("closed/cri.sock")],
    ])("%s without permission is reported as such", async (_what, place) => {
      const socket = place();
      chmodSync(dir.path, 0o755);
      mkdirSync(dir.join("closed"), { mode: 0o700 });
      const runtime = await startSimulated({ socket });
      cleanUps.push(() => runtime.close());
      chmodSync(socket, 0o600);

      const program = join(import.meta.dirname, "fixtures/call-as.ts");
      const { stdout } = await promisify(execFile)(process.execPath, [program, socket, "65534"]);

      expect(JSON.parse(stdout)).toEqual({
        kind: "unreachable",
        message: `no permission to reach the runtime socket ${socket}`,
        next: "Run unghost as root.",
      });
    });
  });
});

describe("a runtime that does not answer", () => {
  test.each([
    ["that accepts and stays silent", () => raw((socket) => socket.resume())],
    ["that reads the call and stays silent", muteRuntime],
  ])("%s ends with our timeout", async (_what, place) => {
    const failure = await failureAt(await place(), { timeoutMs: 300 });

    expect(failure.kind).toBe("deadline");
    expect(failure.message).toBe("Version: the runtime accepted the call and did not answer in time");
    expect(failure.next).toContain("--timeout");
  });

  test("calls can be aborted, before and during the call", async () => {
    const socket = await muteRuntime();
    const controller = new AbortController();

    const during = failureAt(socket, { ...CALL, signal: controller.signal });
    setTimeout(() => controller.abort(), 50);

    expect((await during).kind).toBe("cancelled");
    expect((await failureAt(socket, { ...CALL, signal: controller.signal })).kind).toBe("cancelled");
  });

  test("a timeout may have a fraction", async () => {
    expect((await failureAt(await muteRuntime(), { timeoutMs: 99.5 })).kind).toBe("deadline");
  });
});

describe("a runtime that goes away", () => {
  test("in the middle of a call is unreachable, long before the timeout", async () => {
    const runtime = await simulated();
    runtime.script({ mode: "mute" });

    const failing = failureAt(runtime.socket);
    await sleep(50);
    await runtime.restart();

    expect(await failing).toMatchObject({ kind: "unreachable", message: expect.stringContaining("hung up") });
  });

  test("and comes back answers the first call of an existing client", async () => {
    const runtime = await simulated();
    const cri = openCri(runtime.socket);
    const before = await cri.version(CALL);

    await runtime.restart();
    const after = await cri.version(CALL);
    cri.close();

    expect(after).toEqual(before);
  });
});

describe("error of the runtime", () => {
  test("is kept verbatim", async () => {
    const runtime = await simulated();
    const [id = ""] = runtime.addSandboxes(1);
    const text = 'plugin type="möbius" failed (delete): 100% of\nlines, "quoted" \\ and \t all';
    runtime.script({ delErrors: { [id]: text } });
    const cri = openCri(runtime.socket);

    await expect(cri.removePodSandbox(id, CALL)).rejects.toMatchObject({
      kind: "refused",
      call: "RemovePodSandbox",
      text: `failed to forcibly stop sandbox "${id}": failed to destroy network for sandbox "${id}": ${text}`,
    });
    cri.close();
  });

  const inTime = { call: "Call", socketPath: "/run/x.sock", timedOut: false };
  const late = { ...inTime, timedOut: true };
  const { cancelled, deadlineExceeded, notFound, resourceExhausted, unavailable, unimplemented, unknown } = GrpcStatus;
  test.each([
    ["a timeout behind the runtime", deadlineExceeded, "stop container: deadline exceeded", inTime, "refused"],
    ["the runtime's clock on our deadline", deadlineExceeded, "any", late, "deadline"],
    ["our own clock", deadlineExceeded, "", inTime, "deadline"],
    ["a stream reset on our deadline", unavailable, "", late, "deadline"],
    ["a stream reset before it", unavailable, "", inTime, "unreachable"],
    ["a runtime that cancels on its own", cancelled, "context canceled", inTime, "refused"],
    ["a runtime that cancels on our deadline", cancelled, "context canceled", late, "deadline"],
    ["our own abort", cancelled, "", inTime, "cancelled"],
    ["an answer too large", resourceExhausted, "grpc: trying to send message larger than max", inTime, "overflow"],
    ["a disk that is full", resourceExhausted, "no space left on device", inTime, "refused"],
    ["an unknown id", notFound, "not found", inTime, "not-found"],
    ["an unknown call", unimplemented, "unknown service", inTime, "unsupported"],
    ["anything else", unknown, "failed to reserve sandbox name", inTime, "refused"],
  ] as const)("%s has its kind and its text", (_what, status, text, failed, kind) => {
    const error = toRuntimeError(new GrpcError(status, text), failed);

    expect(error.kind).toBe(kind);
    if (kind !== "unreachable") expect(error.text).toBe(text);
  });
});

function plainFile(): string {
  writeFileSync(dir.join("plain"), "");
  return dir.join("plain");
}

/** A hard link to the socket survives the listener, like the file after kill -9. */
async function staleSocket(): Promise<string> {
  const server = await listenRaw(dir.join("gone.sock"), () => {});
  linkSync(dir.join("gone.sock"), dir.join("stale.sock"));
  await server.close();
  return dir.join("stale.sock");
}

const closeOnData: Parameters<typeof listenRaw>[1] = (socket) => socket.once("data", () => socket.destroy());
const answerHttp1: Parameters<typeof listenRaw>[1] = (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n");

async function muteRuntime(): Promise<string> {
  const runtime = await simulated();
  runtime.script({ mode: "mute" });
  return runtime.socket;
}
