import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { onTestFinished } from "vitest";
import { runOrThrow } from "../../lab/command.ts";

/** What `make image` builds. */
export const IMAGE = "dist/image";

export interface Descriptor {
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly os: string; readonly architecture: string };
}

export function blobPath(digest: string): string {
  return join(IMAGE, "blobs", digest.replace(":", "/"));
}

export function readBlob<Content>({ digest }: Descriptor): Content {
  return JSON.parse(readFileSync(blobPath(digest), "utf8")) as Content;
}

export interface Manifest {
  readonly config: Descriptor;
  readonly layers: readonly [Descriptor];
}

export function platforms(): readonly Descriptor[] {
  const { manifests } = JSON.parse(readFileSync(join(IMAGE, "index.json"), "utf8")) as { manifests: [Descriptor] };
  return readBlob<{ manifests: Descriptor[] }>(manifests[0]).manifests;
}

/** The layer as a tar archive in this directory. The tar of a minimal Debian has no zstd to call. */
export async function unpackedLayer(platform: Descriptor, dir: string): Promise<string> {
  const path = join(dir, "layer.tar");
  await writeFile(path, zstdDecompressSync(readFileSync(blobPath(readBlob<Manifest>(platform).layers[0].digest))));
  return path;
}

/** The root directory of the image in a directory of its own, until the test ends; with places for runInRoot. */
export async function unpackedImage(architecture: string): Promise<string> {
  const platform = platforms().find((one) => one.platform?.architecture === architecture);
  if (platform === undefined) throw new Error(`the image has no ${architecture}`);
  const dir = await mkdtemp(join(tmpdir(), "unghost-image-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  const layer = await unpackedLayer(platform, dir);
  await runOrThrow(["tar", "-xf", layer, "-C", dir]);
  await rm(layer);
  for (const name of ["unghost", "emulator"]) await writeFile(join(dir, name), "");
  return dir;
}
