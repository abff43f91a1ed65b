import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runOrThrow } from "../../lab/command.ts";
import manifest from "../../package.json" with { type: "json" };

const IMAGE = "dist/image";

interface Descriptor {
  readonly digest: string;
  readonly platform?: { readonly os: string; readonly architecture: string };
}

function blobPath(digest: string): string {
  return join(IMAGE, "blobs", digest.replace(":", "/"));
}

function readBlob<Content>({ digest }: Descriptor): Content {
  return JSON.parse(readFileSync(blobPath(digest), "utf8")) as Content;
}

function platforms(): readonly Descriptor[] {
  const { manifests } = JSON.parse(readFileSync(join(IMAGE, "index.json"), "utf8")) as { manifests: [Descriptor] };
  return readBlob<{ manifests: Descriptor[] }>(manifests[0]).manifests;
}

test("the image is an OCI layout for amd64 and arm64 whose blobs have their digests", () => {
  expect(platforms().map(({ platform }) => platform)).toEqual([
    { os: "linux", architecture: "amd64" },
    { os: "linux", architecture: "arm64" },
  ]);
  for (const name of readdirSync(join(IMAGE, "blobs/sha256"))) {
    const content = readFileSync(blobPath(`sha256:${name}`));
    expect(createHash("sha256").update(content).digest("hex")).toBe(name);
  }
});

test("the image contains the executable, its C library and licences, and no shell, set-id or writable file", async () => {
  for (const platform of platforms()) {
    const { config, layers } = readBlob<{ config: Descriptor; layers: [Descriptor] }>(platform);
    const { stdout } = await runOrThrow(["tar", "-tvzf", blobPath(layers[0].digest)]);
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
