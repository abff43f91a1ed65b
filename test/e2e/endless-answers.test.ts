import { mkdirSync } from "node:fs";
import { constants, type ServerHttp2Stream } from "node:http2";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ListContainerMessage } from "../../src/runtime/gen/containerd/containers.ts";
import { ListPodSandboxResponse, VersionResponse } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { frame } from "../../src/runtime/grpc.ts";
import { startStub } from "../kube/stub-server.ts";
import { listenHttp2 } from "../support/http2-peer.ts";
import { tempDir } from "../support/temp-dir.ts";
import { kubeconfigFor, scanPeak } from "./scan-peak.ts";
import { GUARD_MS, simulatedNode } from "./unghost.ts";

const HEADERS = { ":status": 200, "content-type": "application/grpc" };
/** Far below the memory of an endless answer, and above the noise of the garbage collector. */
const MAX_TIMES_ORDINARY = 6;

function answer(stream: ServerHttp2Stream, message: Uint8Array): void {
  stream.respond(HEADERS, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(frame(message));
}

/** As fast as the client reads, until it disconnects. */
function flood(stream: ServerHttp2Stream, chunk: Uint8Array): void {
  stream.respond(HEADERS);
  const pour = (): void => {
    let takesMore = true;
    while (takesMore && !stream.destroyed) takesMore = stream.write(chunk);
  };
  stream.on("drain", pour);
  pour();
}

const version = VersionResponse.encode(
  VersionResponse.fromPartial({
    version: "0.1.0",
    runtimeName: "containerd",
    runtimeVersion: "2.3.4",
    runtimeApiVersion: "v1",
  }),
).finish();
const labels = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`label-${index}`, "x".repeat(20)]));
const record = frame(
  ListContainerMessage.encode(ListContainerMessage.fromPartial({ container: { id: "a".repeat(64), labels } })).finish(),
);
const sandboxes = frame(
  ListPodSandboxResponse.encode(
    ListPodSandboxResponse.fromPartial({
      items: Array.from({ length: 100 }, (_, index) => ({ id: String(index).padStart(64, "0"), labels })),
    }),
  ).finish(),
);

/** An empty answer to any request. */
function empty(stream: ServerHttp2Stream): void {
  answer(stream, new Uint8Array());
}

type Answers = Readonly<Record<string, (stream: ServerHttp2Stream) => void>>;

/** A node whose runtime answers like this. */
async function nodeWith(answers: Answers): Promise<string> {
  const dir = tempDir();
  const root = dir.path;
  mkdirSync(join(root, "run/containerd"), { recursive: true, mode: 0o755 });
  const peer = await listenHttp2(join(root, "run/containerd/containerd.sock"), (stream, headers) => {
    const method = String(headers[constants.HTTP2_HEADER_PATH]).split("/").at(-1) ?? "";
    stream.on("error", () => undefined);
    if (method === "Version") answer(stream, version);
    else (answers[method] ?? empty)(stream);
  });
  onTestFinished(async () => {
    await peer.close();
    dir.remove();
  });
  return root;
}

function scan(root: string, flags: readonly string[] = ["--no-kube"]) {
  return scanPeak(root, ["--timeout", "20s", ...flags]);
}

describe("an endless answer", { timeout: GUARD_MS * 4 }, () => {
  test.each<readonly [string, string, Answers]>([
    ["a stream of records", "containerd", { ListStream: (stream) => flood(stream, record) }],
    ["a list of sandboxes", "cri", { ListPodSandbox: (stream) => flood(stream, sandboxes) }],
  ])("of the runtime is aborted: %s", async (_, source, answers) => {
    const ordinary = await scan((await simulatedNode()).root);

    const { report, peakKb } = await scan(await nodeWith(answers));

    expect(report.verdict).toBe("unknown");
    expect(report.problems).toContainEqual(expect.objectContaining({ source, code: "endless" }));
    expect(peakKb).toBeLessThan(ordinary.peakKb * MAX_TIMES_ORDINARY);
  });

  test("of the API server is aborted", async () => {
    const node = await simulatedNode();
    const ordinary = await scan(node.root);
    const { url, close } = await startStub(() => (response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const chunk = Buffer.alloc(64 * 1024, " ");
      const pour = (): void => {
        let takesMore = true;
        while (takesMore && !response.destroyed) takesMore = response.write(chunk);
      };
      response.on("drain", pour);
      pour();
    });
    onTestFinished(close);
    const kubeconfig = kubeconfigFor(url);

    const { report, peakKb } = await scan(node.root, ["--kubeconfig", kubeconfig, "--node", "n"]);

    expect(report.kubernetes).toMatchObject({ error: expect.stringContaining("larger than") });
    expect(peakKb).toBeLessThan(ordinary.peakKb * MAX_TIMES_ORDINARY);
  });
});
