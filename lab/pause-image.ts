import { createHash } from "node:crypto";
import { tar } from "../src/bundle/tar.ts";

/** The only image of the lab: the pause process of every sandbox and the workload of every container. */
export const PAUSE_IMAGE = "unghost.lab/pause:1";

/** Like Kubernetes' own: ends at SIGTERM at once. For CRI-O, which waits for that; containerd kills the process. */
export const PAUSE_COMMAND = "/bin/pause";
const PAUSE_SCRIPT = "#!/bin/sh\ntrap 'exit 0' TERM\nsleep 1000000000 &\nwait\n";

const LINKS = ["sh", "sleep", "cat", "echo", "true", "false", "ls", "kill", "ps"];

/** An OCI image in one archive for `ctr images import`: a static busybox that sleeps by default. */
export function pauseImage(busybox: Uint8Array): Buffer {
  const layer = tar([
    { type: "directory", path: "bin/", mode: 0o755 },
    { type: "file", path: "bin/busybox", content: busybox, mode: 0o755 },
    { type: "file", path: PAUSE_COMMAND.slice(1), content: Buffer.from(PAUSE_SCRIPT), mode: 0o755 },
    ...LINKS.map((name) => ({ type: "symlink", path: `bin/${name}`, target: "busybox" }) as const),
    { type: "directory", path: "tmp/", mode: 0o1777 },
  ]);
  const config = json({
    architecture: { x64: "amd64", arm64: "arm64" }[process.arch as string] ?? process.arch,
    os: "linux",
    config: { Env: ["PATH=/bin"], Entrypoint: ["/bin/sleep", "1000000000"] },
    rootfs: { type: "layers", diff_ids: [digest(layer)] },
  });
  const manifest = json({
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    config: descriptor("application/vnd.oci.image.config.v1+json", config),
    layers: [descriptor("application/vnd.oci.image.layer.v1.tar", layer)],
  });
  const index = json({
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.index.v1+json",
    manifests: [
      {
        ...descriptor("application/vnd.oci.image.manifest.v1+json", manifest),
        annotations: { "io.containerd.image.name": PAUSE_IMAGE, "org.opencontainers.image.ref.name": "1" },
      },
    ],
  });
  const blobs = [layer, config, manifest].map(
    (content) => ({ type: "file", path: blobPath(content), content, mode: 0o644 }) as const,
  );
  return tar([
    { type: "file", path: "oci-layout", content: json({ imageLayoutVersion: "1.0.0" }), mode: 0o644 },
    { type: "file", path: "index.json", content: index, mode: 0o644 },
    { type: "directory", path: "blobs/", mode: 0o755 },
    { type: "directory", path: "blobs/sha256/", mode: 0o755 },
    ...blobs,
  ]);
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function digest(content: Uint8Array): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}

function blobPath(content: Uint8Array): string {
  return `blobs/${digest(content).replace(":", "/")}`;
}

function descriptor(mediaType: string, content: Uint8Array): Record<string, unknown> {
  return { mediaType, digest: digest(content), size: content.length };
}
