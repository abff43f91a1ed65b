/**
 * Builds dist/talos, the system extension for Talos as an OCI layout for amd64 and arm64, and dist/unghost-talos.tar,
 * with the machine-config patch that enables the service.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { DEFAULT_STATE_DIR } from "../src/boot/install/hook.ts";
import { talosFiles } from "../src/boot/install/platforms.ts";
import type { TarEntry } from "../src/bundle/tar.ts";
import { bundledPackages } from "./release/bundled-packages.ts";
import { thirdPartyLicences } from "./release/documents.ts";
import { engineVersion } from "./release/engines.ts";
import { imageFiles, LIBCS } from "./release/image-files.ts";
import { layoutArchive, ociLayout, type Platform } from "./release/oci.ts";
import { publishedAt } from "./release/published-at.ts";
import { extensionFiles } from "./release/talos-extension.ts";

const OUT = "dist/talos";
const { talosImage: NAME, warning } = publishedAt(process.env, manifest.version);

const talos = talosFiles({ stateDir: DEFAULT_STATE_DIR, bootArgs: [] }, manifest.version);
const licences = thirdPartyLicences(engineVersion(), await bundledPackages());
const platforms: Platform[] = [];
for (const libc of LIBCS) {
  const files: readonly TarEntry[] = extensionFiles(talos, await imageFiles(libc, licences));
  platforms.push({ architecture: libc.architecture, files });
}
const layout = await ociLayout({
  // Which compressions the installers of all supported versions unpack is not known.
  compression: "gzip",
  name: NAME,
  version: manifest.version,
  entrypoint: [],
  env: [],
  labels: {
    "org.opencontainers.image.title": "unghost for Talos",
    "org.opencontainers.image.description": manifest.description,
    "org.opencontainers.image.version": manifest.version,
  },
  platforms,
});
rmSync(OUT, { recursive: true, force: true });
for (const [path, content] of layout) {
  mkdirSync(dirname(join(OUT, path)), { recursive: true });
  writeFileSync(join(OUT, path), content);
}
writeFileSync("dist/unghost-talos.tar", layoutArchive(layout));
writeFileSync("dist/unghost-talos-patch.yaml", talos.machineConfigPatch);
console.log(`${NAME}:${manifest.version}: ${platforms.length} platforms`);
if (warning !== undefined) console.warn(warning);
