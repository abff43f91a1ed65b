import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { runOrThrow } from "../../lab/command.ts";
import manifest from "../../package.json" with { type: "json" };
import { emulatorFiles } from "./emulator.ts";
import { blobPath, IMAGE, type Manifest, platforms, readBlob, unpackedImage, unpackedLayer } from "./image-layout.ts";
import { runInRoot } from "./musl-root.ts";

/** What a node with a slow link pulls; the engine alone is nine tenths of it. */
const MAX_LAYER_BYTES = 50_000_000;

test("the image is an OCI layout for amd64 and arm64 whose blobs have their digests", () => {
  expect(platforms().map(({ platform }) => platform)).toEqual([
    { os: "linux", architecture: "amd64" },
    { os: "linux", architecture: "arm64" },
  ]);
  for (const name of readdirSync(join(IMAGE, "blobs/sha256"))) {
    const content = readFileSync(blobPath(`sha256:${name}`));
    expect(sha256(content)).toBe(name);
  }
  for (const platform of platforms()) {
    const { config, layers } = readBlob<Manifest>(platform);
    const content = readFileSync(blobPath(layers[0].digest));
    // What a runtime compares after it has unpacked the layer.
    const { rootfs } = readBlob<{ rootfs: { diff_ids: string[] } }>(config);
    expect([layers[0].size, rootfs.diff_ids]).toEqual([
      content.length,
      [`sha256:${sha256(zstdDecompressSync(content))}`],
    ]);
  }
});

function sha256(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

const NOT_ROOT = process.arch !== "x64" || process.getuid?.() !== 0;

test.skipIf(NOT_ROOT).each(["amd64", "arm64"])(
  "the program of the image for %s runs with nothing else",
  async (arch) => {
    const root = await unpackedImage(arch);
    const emulator = arch === "amd64" ? {} : { emulator: (await emulatorFiles()).emulator };
    const unghost = (...args: readonly string[]) =>
      runInRoot({ root, ...emulator }, join(root, "usr/bin/unghost"), args);

    const version = await unghost("version", "-o", "json");
    const locked = await unghost("system-call", "flock", "exclusive");
    const scanned = await unghost("scan", "--no-kube", "--host-root", "/dev");

    expect(JSON.parse(version.stdout)).toMatchObject({ version: manifest.version, platform: `linux/${arch}` });
    expect(locked).toMatchObject({ code: 0, stderr: "" });
    expect(scanned.code).toBe(2);
  },
);

test("the image contains the executable, its C library and licences, and no shell, set-id or writable file", async () => {
  for (const platform of platforms()) {
    const { config, layers } = readBlob<Manifest>(platform);
    const dir = await mkdtemp(join(tmpdir(), "unghost-layer-"));
    onTestFinished(() => rm(dir, { recursive: true }));
    const { stdout } = await runOrThrow(["tar", "-tvf", await unpackedLayer(platform, dir)]);
    expect(layers[0].size).toBeLessThan(MAX_LAYER_BYTES);
    const entries = stdout
      .trim()
      .split("\n")
      .map((line) => line.split(/\s+/));
    const executables = entries.filter(([mode = ""]) => /^-..x/.test(mode)).map((entry) => entry.at(-1) ?? "");

    expect(readBlob(config)).toMatchObject({
      architecture: platform.platform?.architecture,
      config: {
        Entrypoint: ["/usr/bin/unghost"],
        Labels: { "org.opencontainers.image.title": "unghost", "org.opencontainers.image.version": manifest.version },
      },
    });
    expect(executables).toContain("usr/bin/unghost");
    expect(executables.filter((path) => path !== "usr/bin/unghost" && !/^lib(64)?\/.*\.so\.\d$/.test(path))).toEqual(
      [],
    );
    expect(entries.filter(([mode = ""]) => /[st]|w.$/.test(mode) || mode[5] === "w")).toEqual([]);
    expect(entries.map((entry) => entry.at(-1))).toEqual(
      expect.arrayContaining([expect.stringMatching(/licen[cs]es/i)]),
    );
  }
});
