import { stringify } from "yaml";
import type { ReleaseTarget } from "./engines.ts";

/** A downloadable archive of the release. */
export interface ReleasedArchive extends Pick<ReleaseTarget, "os" | "arch"> {
  /** `unghost-0.1.0-linux-amd64`: the archive without its extension, and the directory in it. */
  readonly name: string;
  /** The executable in it. */
  readonly file: string;
  readonly sha256: string;
}

const SUMMARY = "Find and heal ghost pod sandboxes";
const DESCRIPTION = `A ghost is a pod sandbox that is dead but not gone: it keeps its name reserved in the container
runtime, or its removal fails forever, so that its pod can never start again. unghost finds ghosts on a node, explains their
error messages and heals them.`;

/**
 * For krew, kubectl's plugin manager: `kubectl unghost`. On Linux only archives with glibc, because krew cannot
 * select by C library.
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
      platforms: archives.map(({ os, arch, name, file, sha256 }) => ({
        selector: { matchLabels: { os, arch } },
        uri: `${baseUrl}/${name}.tar.gz`,
        sha256,
        files: [
          { from: `${name}/${file}`, to: "." },
          { from: `${name}/LICENSE`, to: "." },
        ],
        bin: file,
      })),
    },
  });
}

const BREW_ARCH = { amd64: "intel", arm64: "arm" } as const;
const BREW_OS = { linux: "on_linux", darwin: "on_macos" } as const;

/** A formula for Homebrew, on Linux and macOS. */
export function homebrewFormula(version: string, baseUrl: string, archives: readonly ReleasedArchive[]): string {
  const machines = (["linux", "darwin"] as const).map((system) => {
    const urls = archives
      .filter(({ os }) => os === system)
      .map(
        ({ arch, name, sha256 }) => `    on_${BREW_ARCH[arch]} do
      url "${baseUrl}/${name}.tar.gz"
      sha256 "${sha256}"
    end`,
      );
    return `  ${BREW_OS[system]} do\n${urls.join("\n")}\n  end`;
  });
  return `class Unghost < Formula
  desc "${SUMMARY}"
  homepage "https://unghost.dev"
  version "${version}"
  license "Apache-2.0"

${machines.join("\n\n")}

  def install
    bin.install "unghost"
    bin.install_symlink "unghost" => "kubectl-unghost"
    generate_completions_from_executable(bin/"unghost", "completion")
  end

  test do
    assert_match "unghost #{version}", shell_output("#{bin}/unghost version")
  end
end
`;
}
