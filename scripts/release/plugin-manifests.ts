import { stringify } from "yaml";

/** A downloadable archive of the release. */
export interface ReleasedArchive {
  readonly arch: "amd64" | "arm64";
  /** `unghost-0.1.0-linux-amd64`: the archive without its extension, and the directory in it. */
  readonly name: string;
  readonly sha256: string;
}

const SUMMARY = "Find and heal ghost pod sandboxes";
const DESCRIPTION = `A ghost is a pod sandbox that is dead but not gone: it keeps its name reserved in the container
runtime, or its removal fails forever, so that its pod can never start again. unghost finds ghosts on a node, explains their
error messages and heals them.`;

/**
 * For krew, kubectl's plugin manager: `kubectl unghost`. Only archives with glibc, because krew cannot select by C
 * library.
 */
export function krewManifest(version: string, baseUrl: string, archives: readonly ReleasedArchive[]): string {
  return stringify({
    apiVersion: "krew.googlecontainertools.github.com/v1alpha2",
    kind: "Plugin",
    metadata: { name: "unghost" },
    spec: {
      version: `v${version}`,
      homepage: "https://unghost.dev",
      shortDescription: SUMMARY,
      description: DESCRIPTION,
      platforms: archives.map(({ arch, name, sha256 }) => ({
        selector: { matchLabels: { os: "linux", arch } },
        uri: `${baseUrl}/${name}.tar.gz`,
        sha256,
        files: [
          { from: `${name}/unghost`, to: "." },
          { from: `${name}/LICENSE`, to: "." },
        ],
        bin: "unghost",
      })),
    },
  });
}

const BREW_ARCH = { amd64: "intel", arm64: "arm" } as const;

/** A formula for Homebrew on Linux. */
export function homebrewFormula(version: string, baseUrl: string, archives: readonly ReleasedArchive[]): string {
  const machines = archives.map(
    ({ arch, name, sha256 }) => `    on_${BREW_ARCH[arch]} do
      url "${baseUrl}/${name}.tar.gz"
      sha256 "${sha256}"
    end`,
  );
  return `class Unghost < Formula
  desc "${SUMMARY}"
  homepage "https://unghost.dev"
  version "${version}"
  license "Apache-2.0"

  depends_on :linux

  on_linux do
${machines.join("\n")}
  end

  def install
    bin.install "unghost"
    generate_completions_from_executable(bin/"unghost", "completion")
  end

  test do
    assert_match "unghost #{version}", shell_output("#{bin}/unghost version")
  end
end
`;
}
