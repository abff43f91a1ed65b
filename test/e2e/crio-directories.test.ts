import { mkdirSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { VersionResponse } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { frame } from "../../src/runtime/grpc.ts";
import { listenHttp2 } from "../support/http2-peer.ts";
import { tempDir } from "../support/temp-dir.ts";
import { problemsOf, reportOf, unghost } from "./unghost.ts";

const VERSION = { version: "0.1.0", runtimeName: "cri-o", runtimeVersion: "1.33.4", runtimeApiVersion: "v1" };

/** A node whose CRI-O runs nothing and reports only its version. */
async function crioNode(files: Readonly<Record<string, string>>): Promise<string> {
  const dir = tempDir();
  mkdirSync(dir.join("run/crio"), { recursive: true });
  for (const [path, text] of Object.entries(files)) dir.write(path, text);
  const version = VersionResponse.encode(VersionResponse.fromPartial(VERSION)).finish();
  const peer = await listenHttp2(dir.join("run/crio/crio.sock"), (stream, headers) => {
    const isVersion = String(headers[":path"]).endsWith("/Version");
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(frame(isVersion ? version : new Uint8Array()));
  });
  onTestFinished(async () => {
    await peer.close();
    dir.remove();
  });
  return dir.path;
}

const BROKEN = "/etc/kubernetes/cni/net.d/10-pods.conflist";

test.skipIf(process.getuid?.() !== 0)(
  "scan reads the network from the directory that CRI-O's drop-in names (needs root)",
  async () => {
    const root = await crioNode({
      "etc/crio/crio.conf": '[crio.network]\nnetwork_dir = "/etc/cni/elsewhere"\n',
      "etc/crio/crio.conf.d/10-network.conf": '[crio.network]\nnetwork_dir = "/etc/kubernetes/cni/net.d"\n',
      [BROKEN]: "{",
    });

    const report = reportOf(await unghost(["scan", "--no-kube", "-o", "json", "--host-root", root]));

    expect(report.runtime.name).toBe("cri-o");
    expect(JSON.stringify([problemsOf(report), report.findings])).toContain(BROKEN);
  },
);
