import { expect, test } from "vitest";
import { parse } from "yaml";
import { homebrewFormula, krewManifest, type ReleasedArchive } from "../../scripts/release/plugin-manifests.ts";

const ARCHIVES: readonly ReleasedArchive[] = [
  { os: "linux", arch: "amd64", name: "unghost-1.2.3-linux-amd64", file: "unghost", sha256: "a".repeat(64) },
  { os: "linux", arch: "arm64", name: "unghost-1.2.3-linux-arm64", file: "unghost", sha256: "b".repeat(64) },
  { os: "darwin", arch: "amd64", name: "unghost-1.2.3-darwin-amd64", file: "unghost", sha256: "c".repeat(64) },
  { os: "darwin", arch: "arm64", name: "unghost-1.2.3-darwin-arm64", file: "unghost", sha256: "d".repeat(64) },
  { os: "windows", arch: "amd64", name: "unghost-1.2.3-windows-amd64", file: "unghost.exe", sha256: "e".repeat(64) },
  { os: "windows", arch: "arm64", name: "unghost-1.2.3-windows-arm64", file: "unghost.exe", sha256: "f".repeat(64) },
];
const BASE = "https://downloads.example/v1.2.3";

test("the krew manifest contains each archive with its checksum, and the program in it", () => {
  const manifest = parse(krewManifest("1.2.3", BASE, ARCHIVES)) as {
    kind: string;
    spec: { version: string; shortDescription: string; platforms: object[] };
  };

  expect(manifest).toMatchObject({ kind: "Plugin", metadata: { name: "unghost" }, spec: { version: "v1.2.3" } });
  // krew's own limit.
  expect(manifest.spec.shortDescription.length).toBeLessThanOrEqual(50);
  expect(manifest.spec.platforms).toEqual(
    ARCHIVES.map(({ os, arch, name, file, sha256 }) => ({
      selector: { matchLabels: { os, arch } },
      uri: `${BASE}/${name}.tar.gz`,
      sha256,
      files: [
        { from: `${name}/${file}`, to: "." },
        { from: `${name}/LICENSE`, to: "." },
      ],
      bin: file,
    })),
  );
});

test("the krew manifest passes krew's own validation", () => {
  const { apiVersion, metadata, spec } = parse(krewManifest("1.2.3", BASE, ARCHIVES)) as KrewPlugin;

  expect(apiVersion).toBe("krew.googlecontainertools.github.com/v1alpha2");
  expect(metadata.name).toMatch(/^[\w-]+$/);
  expect(spec.version).toMatch(/^v\d+\.\d+\.\d+/);
  expect(spec.shortDescription).toMatch(/^[^\r\n]+$/);
  for (const { uri, sha256, bin, files, selector } of spec.platforms) {
    expect([uri !== "", bin !== "", files.length > 0]).toEqual([true, true, true]);
    expect(sha256).toMatch(/^[a-f0-9]{64}$/);
    for (const { from, to } of files) expect([from === "", to === ""]).toEqual([false, false]);
    // krew links to the program below the directory that the files are copied to.
    expect(files.map(({ from }) => from.split("/").at(-1))).toContain(bin);
    expect(Object.keys(selector.matchLabels).toSorted()).toEqual(["arch", "os"]);
  }
});

interface KrewPlugin {
  readonly apiVersion: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly version: string;
    readonly shortDescription: string;
    readonly platforms: readonly {
      readonly uri: string;
      readonly sha256: string;
      readonly bin: string;
      readonly files: readonly { readonly from: string; readonly to: string }[];
      readonly selector: { readonly matchLabels: object };
    }[];
  };
}

test("the Homebrew formula contains each archive for Linux and macOS with its checksum", () => {
  const formula = homebrewFormula("1.2.3", BASE, ARCHIVES);
  const [linux = "", macos = ""] = formula.split("on_macos do");

  for (const { os, name, sha256 } of ARCHIVES) {
    const block = `url "${BASE}/${name}.tar.gz"\n      sha256 "${sha256}"`;
    expect([name, linux.includes(block), macos.includes(block)]).toEqual([name, os === "linux", os === "darwin"]);
  }
  // Every block is closed.
  expect(formula.match(/\b(class|do|def)\b/g)?.length).toBe(formula.match(/^\s*end$/gm)?.length);
});
