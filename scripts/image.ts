/**
 * Builds dist/image (an OCI layout for amd64 and arm64) and dist/unghost-image.tar, without a container engine. The
 * image contains only the executable, its C library and licences: no shell.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { bundledPackages } from "./release/bundled-packages.ts";
import { thirdPartyLicences } from "./release/documents.ts";
import { engineVersion } from "./release/engines.ts";
import { imageFiles, LIBCS } from "./release/image-files.ts";
import { layoutArchive, ociLayout, type Platform } from "./release/oci.ts";
import { publishedAt } from "./release/published-at.ts";

const OUT = "dist/image";
const ARCHIVE = "dist/unghost-image.tar";
const { image: NAME, warning } = publishedAt(process.env, manifest.version);

const licences = thirdPartyLicences(engineVersion(), await bundledPackages());
const platforms: Platform[] = [];
for (const libc of LIBCS) platforms.push({ architecture: libc.architecture, files: await imageFiles(libc, licences) });

const files = await ociLayout({
  compression: "zstd",
  name: NAME,
  version: manifest.version,
  entrypoint: ["/usr/bin/unghost"],
  env: ["PATH=/usr/bin"],
  labels: {
    "org.opencontainers.image.title": manifest.name,
    "org.opencontainers.image.description": manifest.description,
    "org.opencontainers.image.licenses": `${manifest.license} AND MIT AND LGPL-2.1-or-later`,
    "org.opencontainers.image.version": manifest.version,
  },
  platforms,
});
rmSync(OUT, { recursive: true, force: true });
for (const [path, content] of files) {
  mkdirSync(dirname(join(OUT, path)), { recursive: true });
  writeFileSync(join(OUT, path), content);
}
writeFileSync(ARCHIVE, layoutArchive(files));
const bytes = [...files.values()].reduce((sum, { length }) => sum + length, 0);
console.log(`${NAME}:${manifest.version}: ${platforms.length} platforms, ${(bytes / 1e6).toFixed(1)} MB compressed`);
if (warning !== undefined) console.warn(warning);
