import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { type TarEntry, tar } from "../../lab/tar.ts";

export interface Platform {
  readonly architecture: "amd64" | "arm64";
  readonly files: readonly TarEntry[];
}

export interface Image {
  readonly name: string;
  readonly version: string;
  readonly entrypoint: readonly string[];
  readonly env: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly platforms: readonly Platform[];
}

/** Files of an OCI layout by their path. One layer per platform; no dates and no names of a builder. */
export function ociLayout(image: Image): ReadonlyMap<string, Buffer> {
  const files = new Map<string, Buffer>();
  const blob = (mediaType: string, content: Buffer) => {
    const hex = sha256(content);
    files.set(`blobs/sha256/${hex}`, content);
    return { mediaType, digest: `sha256:${hex}`, size: content.length };
  };
  const manifests = image.platforms.map(({ architecture, files: entries }) => {
    const layer = tar(entries);
    const config = blob("application/vnd.oci.image.config.v1+json", json(configOf(image, architecture, layer)));
    const layers = [blob("application/vnd.oci.image.layer.v1.tar+gzip", gzipSync(layer, { level: 9 }))];
    const mediaType = "application/vnd.oci.image.manifest.v1+json";
    const manifest = blob(mediaType, json({ schemaVersion: 2, mediaType, config, layers, annotations: image.labels }));
    return { ...manifest, platform: { os: "linux", architecture } };
  });
  const mediaType = "application/vnd.oci.image.index.v1+json";
  const index = blob(mediaType, json({ schemaVersion: 2, mediaType, manifests, annotations: image.labels }));
  const annotations = {
    "io.containerd.image.name": `${image.name}:${image.version}`,
    "org.opencontainers.image.ref.name": image.version,
  };
  files.set("index.json", json({ schemaVersion: 2, mediaType, manifests: [{ ...index, annotations }] }));
  files.set("oci-layout", json({ imageLayoutVersion: "1.0.0" }));
  return files;
}

function configOf({ env, entrypoint, labels }: Image, architecture: string, layer: Buffer): object {
  return {
    architecture,
    os: "linux",
    config: { Env: env, Entrypoint: entrypoint, Labels: labels, WorkingDir: "/" },
    rootfs: { type: "layers", diff_ids: [`sha256:${sha256(layer)}`] },
  };
}

/** The layout for `ctr images import` and `docker load`. */
export function layoutArchive(files: ReadonlyMap<string, Buffer>): Buffer {
  return tar([
    { type: "directory", path: "blobs/", mode: 0o755 },
    { type: "directory", path: "blobs/sha256/", mode: 0o755 },
    ...[...files].map(([path, content]) => ({ type: "file", path, content, mode: 0o644 }) as const),
  ]);
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function sha256(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
