import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { constants, gzip, zstdCompress } from "node:zlib";
import { type TarEntry, tar } from "../../src/bundle/tar.ts";

export interface Platform {
  readonly architecture: "amd64" | "arm64";
  readonly files: readonly TarEntry[];
}

/**
 * zstd makes a fifth less than gzip; containerd, CRI-O, podman, and Docker from 23 on unpack it. Level 17, because 19 takes a minute of
 * CPU time more for two megabytes.
 */
const COMPRESSIONS = {
  gzip: (layer: Buffer): Promise<Buffer> => promisify(gzip)(layer, { level: 9 }),
  zstd: (layer: Buffer): Promise<Buffer> =>
    promisify(zstdCompress)(layer, { params: { [constants.ZSTD_c_compressionLevel]: 17 } }),
};

export interface Image {
  readonly name: string;
  readonly compression: keyof typeof COMPRESSIONS;
  readonly version: string;
  readonly entrypoint: readonly string[];
  readonly env: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly platforms: readonly Platform[];
}

/** Files of an OCI layout by their path. One layer per platform; no dates and no names of a builder. */
export async function ociLayout(image: Image): Promise<ReadonlyMap<string, Buffer>> {
  const files = new Map<string, Buffer>();
  const blob = (mediaType: string, content: Buffer) => {
    const hex = sha256(content);
    files.set(`blobs/sha256/${hex}`, content);
    return { mediaType, digest: `sha256:${hex}`, size: content.length };
  };
  const layered = await Promise.all(
    image.platforms.map(async ({ architecture, files: entries }) => {
      const layer = tar(entries);
      return { architecture, layer, compressed: await COMPRESSIONS[image.compression](layer) };
    }),
  );
  const manifests = layered.map(({ architecture, layer, compressed }) => {
    const config = blob("application/vnd.oci.image.config.v1+json", json(configOf(image, architecture, layer)));
    const layers = [blob(`application/vnd.oci.image.layer.v1.tar+${image.compression}`, compressed)];
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
