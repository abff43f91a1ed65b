import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import manifest from "../../package.json" with { type: "json" };
import { SCRIPTS } from "../../src/cli/commands/completion.ts";
import { wrap } from "../../src/report/words.ts";
import type { BundledPackage } from "./bundled-packages.ts";
import { thirdPartyLicences } from "./documents.ts";
import { PACKAGE_UNITS } from "./package-units.ts";

export type Packager = "deb" | "rpm";

export interface PackageFile {
  readonly path: string;
  readonly content: Uint8Array;
  readonly mode: number;
}

export const MAINTAINER = "unghost maintainers <maintainers@unghost.dev>";

/** The time of every file in a package, and of its entry in the change log, so that the build is reproducible. */
export const PACKAGE_TIME = new Date("2026-01-01T00:00:00Z");

/** Everything but the executable. */
export function packageFiles(
  packager: Packager,
  engine: string,
  packages: readonly BundledPackage[],
): readonly PackageFile[] {
  const isDeb = packager === "deb";
  const unitDir = isDeb ? "/lib/systemd/system" : "/usr/lib/systemd/system";
  const zsh = isDeb ? "/usr/share/zsh/vendor-completions/_unghost" : "/usr/share/zsh/site-functions/_unghost";
  return [
    file("/usr/share/man/man1/unghost.1.gz", zipped(readFileSync("docs/man/unghost.1", "utf8"))),
    file("/usr/share/bash-completion/completions/unghost", SCRIPTS.bash),
    file(zsh, SCRIPTS.zsh),
    file("/usr/share/fish/vendor_completions.d/unghost.fish", SCRIPTS.fish),
    ...[...PACKAGE_UNITS].map(([name, text]) => file(`${unitDir}/${name}`, text)),
    file("/usr/share/doc/unghost/changelog.gz", zipped(isDeb ? debianChangelog() : changelog())),
    file("/usr/share/doc/unghost/copyright", COPYRIGHT),
    file("/usr/share/doc/unghost/third-party-licences.gz", zipped(thirdPartyLicences(engine, packages))),
    ...(isDeb ? [file("/usr/share/lintian/overrides/unghost", LINTIAN_OVERRIDES)] : []),
  ];
}

function file(path: string, content: string | Uint8Array): PackageFile {
  return { path, content: Buffer.from(content), mode: 0o644 };
}

function zipped(text: string): Uint8Array {
  return gzipSync(text, { level: 9 });
}

function changelog(): string {
  return readFileSync("CHANGELOG.md", "utf8");
}

const CHANGELOG_COLUMNS = 78;

/** The entries of this version, in Debian's format. */
function debianChangelog(): string {
  const section =
    changelog()
      .split(/^## /m)
      .find((part) => part.startsWith(manifest.version)) ?? "";
  const [news = ""] = section.split(/^### /m);
  const changes = news
    .slice(news.indexOf("\n"))
    .split(/^- /m)
    .slice(1)
    .map((change) => wrap(`  * ${change.replace(/\s+/g, " ").trim()}`, CHANGELOG_COLUMNS, "    "));
  const date = PACKAGE_TIME.toUTCString().replace("GMT", "+0000");
  return `unghost (${manifest.version}) unstable; urgency=medium\n\n${changes.join("\n")}\n\n -- ${MAINTAINER}  ${date}\n`;
}

const COPYRIGHT = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: unghost
Comment: Licences of the engine and of the libraries inside the executable: third-party-licences.gz

Files: *
Copyright: 2026 The unghost authors
License: Apache-2.0
 On Debian systems, the full text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
`;

const LINTIAN_OVERRIDES = `# The engine (bun) links its libraries statically and is not built by this package.
unghost: embedded-library
unghost: hardening-no-pie
unghost: hardening-no-relro
unghost: unstripped-binary-or-object
# Enabled, the boot hook is started by the runtime's own unit, so that it runs at every start of the runtime.
unghost: systemd-service-file-refers-to-unusual-wantedby-target
`;
