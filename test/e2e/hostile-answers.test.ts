import { mkdirSync } from "node:fs";
import { constants } from "node:http2";
import type { Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { VersionResponse } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { frame } from "../../src/runtime/grpc.ts";
import { pour, type RawAnswer, startRawServer } from "../support/hostile-http.ts";
import {
  answerFrames,
  frameOf,
  headersFrame,
  listenRawHttp2,
  literal,
  type RawStream,
} from "../support/hostile-http2.ts";
import { listenHttp2 } from "../support/http2-peer.ts";
import { tempDir } from "../support/temp-dir.ts";
import { kubeconfigFor, type Scanned, scanPeak } from "./scan-peak.ts";
import { GUARD_MS, simulatedNode } from "./unghost.ts";

const MAX_KB = 250 * 1024;
const TIMEOUT_MS = 2000;
/** For all that is not an answer: the start, and a busy machine. A scan without a deadline takes longer than both. */
const ELSE_MS = 8000;
const MANY = 10_000_000;
const MIB = 1024 * 1024;

/** One after the other: the memory of each is its own. */
async function expectBounded(scan: () => Promise<Scanned>): Promise<Scanned> {
  const startedAt = performance.now();
  const scanned = await scan();
  expect.soft(performance.now() - startedAt).toBeLessThan(TIMEOUT_MS + ELSE_MS);
  expect.soft(scanned.peakKb).toBeLessThanOrEqual(MAX_KB);
  return scanned;
}

const OK = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const LIST = '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[';
const POD = JSON.stringify({
  metadata: { name: "p", namespace: "d", uid: "u" },
  spec: { nodeName: "n", containers: [] },
  status: { phase: "Running" },
});
const PAGE = JSON.stringify({
  metadata: { continue: "c" },
  items: Array.from({ length: 500 }, () => JSON.parse(POD) as object),
});

/** This often between the head and the tail. */
function body(head: string, piece: string, times: number, tail: string): RawAnswer {
  const length = head.length + piece.length * times + tail.length;
  return (socket) => {
    socket.write(`${OK}Content-Length: ${length}\r\n\r\n${head}`);
    pour(socket, piece, times, tail);
  };
}

function whole(text: string): RawAnswer {
  return (socket) => socket.write(`${OK}Content-Length: ${text.length}\r\n\r\n${text}`);
}

/** The head, then the piece without end. */
function endless(head: string, piece: string): RawAnswer {
  return (socket) => {
    socket.write(head);
    pour(socket, piece);
  };
}

function numbered(count: number, piece: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => piece(index)).join(",");
}

describe("an API server that answers with", { timeout: GUARD_MS }, () => {
  test.each<readonly [string, RawAnswer]>([
    ["ten million objects", body(LIST, "{},", MANY, "{}]}")],
    ["ten million arrays", body(LIST, "[],", MANY, "[]]}")],
    ["ten million numbers", body(LIST, "0,", MANY, "0]}")],
    ["five million strings", body(LIST, '"a",', MANY / 2, '""]}')],
    ["nested brackets", body(LIST, "[", MANY, "")],
    ["nested objects", body(LIST, '{"a":', MANY / 2, "")],
    ["a million objects, each with a key of its own", whole(`${LIST}${numbered(1e6, (index) => `{"k${index}":0}`)}]}`)],
    ["an object of a million keys", whole(`${LIST}{${numbered(1e6, (index) => `"k${index}":0`)}}]}`)],
    ["as many objects as are read", body(LIST, "{},", 249_000, "{}]}")],
    ["as many pods as are read", body(LIST, `${POD},`, 40_000, `${POD}]}`)],
    ["a million pods", body(LIST, `${POD},`, 1e6, `${POD}]}`)],
    ["as long a string as is read", body(`${LIST}"`, "aaaaaaaaaaaaaaaa", MIB, '"]}')],
    ["pages without end", whole(PAGE)],
    ["blanks without end", endless(CHUNKED, `1000\r\n${" ".repeat(4096)}\r\n`)],
    ["chunks of one byte", endless(CHUNKED, "1\r\n \r\n")],
    ["endless informational answers", endless("", "HTTP/1.1 100 Continue\r\n\r\n")],
    ["endless early hints", endless("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")],
    ["endless headers", endless(OK, "A: b\r\n")],
    ["an endless header", endless(`${OK}A: `, "b")],
    ["an endless status line", endless("HTTP/1.1 200 ", "OK")],
    ["an endless chunk extension", endless(`${CHUNKED}1;`, "a=b;")],
    ["endless trailers", endless(`${CHUNKED}0\r\n`, "A: b\r\n")],
    ["an error of ten million objects", endless("HTTP/1.1 500 No\r\n\r\n[", "{},")],
    ["an endless line without HTTP", endless("", "\0")],
    [
      "a request to come again at once, without end",
      (socket) => socket.write("HTTP/1.1 429 Too Many\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"),
    ],
    ["a length that never comes", (socket) => socket.write(`${OK}Content-Length: 100000000\r\n\r\n`)],
  ])("%s is given up in bounded memory", async (_, answer) => {
    const node = await simulatedNode();
    const { port, close } = await startRawServer(answer);
    onTestFinished(close);
    const kubeconfig = kubeconfigFor(`http://127.0.0.1:${port}`);
    const flags = ["--timeout", `${TIMEOUT_MS}ms`, "--kubeconfig", kubeconfig, "--node", "n"];

    const { report } = await expectBounded(() => scanPeak(node.root, flags));

    expect(report.kubernetes.error).toBeDefined();
    expect(report.runtime.reachable).toBe(true);
  });
});

const VERSION = VersionResponse.encode(
  VersionResponse.fromPartial({ runtimeName: "containerd", runtimeVersion: "2.3.4", runtimeApiVersion: "v1" }),
).finish();

/** Repeated to as many bytes. */
function filled(piece: readonly number[], bytes: number): Buffer {
  return Buffer.alloc(bytes - (bytes % piece.length), Buffer.from(piece));
}

/** A field that holds bytes. */
function field(number: number, content: Uint8Array): Buffer {
  const length: number[] = [];
  for (let left = content.length; length.length === 0 || left > 0; left >>>= 7) {
    length.push((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
  }
  return Buffer.concat([Buffer.of((number << 3) | 2, ...length), content]);
}

const EMPTY_ITEM = [0x0a, 0] as const;
const LARGEST = 30 * MIB;

function statusWith(json: string): Buffer {
  return field(2, Buffer.concat([field(1, Buffer.from("config")), field(2, Buffer.from(json))]));
}

function labels(count: number): Buffer {
  const entries = Array.from({ length: count }, (_, index) => field(6, field(1, Buffer.from(index.toString(36)))));
  return field(1, Buffer.concat(entries));
}

/** A runtime's socket below a host root of the test's own. */
function socketBelow(): { readonly root: string; readonly path: string } {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  mkdirSync(join(dir.path, "run/containerd"), { recursive: true, mode: 0o755 });
  return { root: dir.path, path: join(dir.path, "run/containerd/containerd.sock") };
}

const CRI_FLAGS = ["--no-kube", "--timeout", `${TIMEOUT_MS}ms`];

describe("a runtime that answers with", { timeout: GUARD_MS }, () => {
  test.each<readonly [string, string, Buffer]>([
    ["fifteen million sandboxes of two bytes", "ListPodSandbox", filled(EMPTY_ITEM, LARGEST)],
    ["as many empty sandboxes as are read", "ListPodSandbox", filled(EMPTY_ITEM, 98_000)],
    ["half a million sandboxes", "ListPodSandbox", filled(EMPTY_ITEM, 998_000)],
    ["fifteen million containers of two bytes", "ListContainers", filled(EMPTY_ITEM, LARGEST)],
    ["fifteen million tasks or leases of two bytes", "List", filled(EMPTY_ITEM, LARGEST)],
    ["a sandbox with a million labels", "ListPodSandbox", labels(1e6)],
    ["nested groups", "ListPodSandbox", filled([0x7b], LARGEST)],
    ["unknown fields", "ListPodSandbox", filled([0x78, 0], LARGEST)],
    ["ten million objects in its configuration", "Status", statusWith(`[${"{},".repeat(9e6)}{}]`)],
    ["nested brackets in its configuration", "Status", statusWith("[".repeat(LARGEST))],
  ])("%s is given up in bounded memory", async (_, method, message) => {
    const { root, path } = socketBelow();
    const peer = await listenHttp2(
      path,
      (stream, headers) => {
        const asked = String(headers[constants.HTTP2_HEADER_PATH]).split("/").at(-1);
        stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
        stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
        stream.end(frame(asked === "Version" ? VERSION : asked === method ? message : new Uint8Array()));
      },
      { maxSessionMemory: 1000 },
    );
    onTestFinished(() => peer.close());

    await expectBounded(() => scanPeak(root, CRI_FLAGS));
  });

  const EIGHT = Buffer.alloc(8);
  const SETTING = Buffer.of(0, 3, 0, 0, 0, 100);
  const flood =
    (...frames: readonly Buffer[]) =>
    (socket: Socket, before: readonly Buffer[] = []) => {
      for (const one of before) socket.write(one);
      pour(socket, Buffer.concat(frames));
    };

  test.each<readonly [string, RawStream]>([
    ["PING", (socket) => flood(frameOf(6, 0, 0, EIGHT))(socket)],
    ["PING, and reads no acknowledgement", (socket) => flood(frameOf(6, 0, 0, EIGHT))(socket.pause())],
    ["SETTINGS", (socket) => flood(frameOf(4, 0, 0, SETTING))(socket)],
    ["SETTINGS, and reads no acknowledgement", (socket) => flood(frameOf(4, 0, 0, SETTING))(socket.pause())],
    [
      "DATA frames of one byte",
      (socket, id) =>
        flood(frameOf(0, 0, id, Buffer.of(1)))(socket, [
          headersFrame(id),
          frameOf(0, 0, id, Buffer.of(0, 1, 255, 0, 0)),
        ]),
    ],
    ["empty DATA frames", (socket, id) => flood(frameOf(0, 0, id))(socket, [headersFrame(id)])],
    [
      "DATA frames of padding",
      (socket, id) => flood(frameOf(0, 8, id, Buffer.alloc(256, 255)))(socket, [headersFrame(id)]),
    ],
    ["informational headers", (socket, id) => flood(frameOf(1, 4, id, literal(":status", "103")))(socket)],
    [
      "CONTINUATION",
      (socket, id) =>
        flood(frameOf(9, 0, id, literal("a", "b".repeat(100))))(socket, [frameOf(1, 0, id, Buffer.of(0x88))]),
    ],
    ["WINDOW_UPDATE", (socket) => flood(frameOf(8, 0, 0, Buffer.of(0, 0, 0, 1)))(socket)],
    ["unknown frames", (socket) => flood(frameOf(0xbe, 0, 0, Buffer.alloc(100)))(socket)],
    ["PRIORITY", (socket, id) => flood(frameOf(2, 0, id, Buffer.alloc(5)))(socket)],
    ["GOAWAY", (socket) => flood(frameOf(7, 0, 0, EIGHT))(socket)],
    ["answers to no call", (socket, id) => flood(frameOf(0, 0, id + 1000, Buffer.alloc(100)))(socket)],
  ])("endless %s is given up in bounded memory", async (_, attack) => {
    const { root, path } = socketBelow();
    let calls = 0;
    const peer = await listenRawHttp2(path, (socket, id) => {
      calls += 1;
      // The first call asks for the version: without an answer no other follows.
      if (calls > 1) attack(socket, id);
      else for (const one of answerFrames(id, VERSION)) socket.write(one);
    });
    onTestFinished(peer.close);

    const { report } = await expectBounded(() => scanPeak(root, CRI_FLAGS));

    expect(report.verdict).toBe("unknown");
    expect(report.problems.map(({ source }) => source)).toContain("cri");
  });
});
