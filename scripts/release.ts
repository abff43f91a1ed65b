/**
 * Builds dist/release: one archive per target, SHA-256 checksums, SBOM, licences. The build is reproducible: it
 * contains no dates and no paths.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { parse } from "yaml";
import manifest from "../package.json" with { type: "json" };
import { tar } from "../src/bundle/tar.ts";
import { compileExecutable } from "./executable.ts";
import { bundledPackages } from "./release/bundled-packages.ts";
import { k3sHelmChart, mixin, talosInlineManifests } from "./release/cluster-manifests.ts";
import { billOfMaterials, thirdPartyLicences } from "./release/documents.ts";
import { engineFor, engineVersion, executableName, TARGETS } from "./release/engines.ts";
import { homebrewFormula, krewManifest, type ReleasedArchive } from "./release/plugin-manifests.ts";
import { publishedAt, publishedChart, publishedInstallScript, publishedManifest } from "./release/published-at.ts";

const OUT = process.argv[2] ?? "dist/release";
const { version } = manifest;
const places = publishedAt(process.env, version);

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
const packages = await bundledPackages();
const documents = documentsOf(packages);
/** The launcher of the CNI guard, which links it, is for nodes. */
const elsewhere = documentsOf(packages.filter(({ name }) => name !== "musl"));

const sums: string[] = [];
const archives: ReleasedArchive[] = [];
publish("install.sh", Buffer.from(publishedInstallScript(readFileSync("deploy/install.sh", "utf8"), places)));
const manifests = readFileSync("deploy/kubernetes/unghost.yaml", "utf8");
const published = publishedManifest(manifests, places);
publish(`unghost-${version}-kubernetes.yaml`, Buffer.from(published));
publish(`unghost-${version}-k3s.yaml`, Buffer.from(k3sHelmChart(version, places)));
publish(`unghost-${version}-talos.yaml`, Buffer.from(talosInlineManifests(published)));
const rules: unknown = parse(readFileSync("deploy/helm/unghost/files/unghost.rules.yaml", "utf8"));
const dashboard: unknown = JSON.parse(readFileSync("deploy/grafana/unghost.json", "utf8"));
publish(`unghost-${version}-mixin.json`, Buffer.from(mixin(rules, dashboard)));
publish(`unghost-chart-${version}.tgz`, gzipSync(tar(publishedChart("deploy/helm/unghost", places)), { level: 9 }));
publish(`unghost-${version}.cdx.json`, Buffer.from(documents["sbom.cdx.json"]));
for (const target of TARGETS) {
  const file = executableName("unghost", target);
  // The executable contains its file name.
  const executable = join(OUT, target.name, file);
  await compileExecutable({ target: target.bunTarget, engine: await engineFor(target), out: executable });
  const content = readFileSync(executable);
  const name = `unghost-${version}-${target.name}`;
  const archive = tar([
    { type: "directory", path: `${name}/`, mode: 0o755 },
    { type: "file", path: `${name}/${file}`, content, mode: 0o755 },
    ...Object.entries(target.os === "linux" ? documents : elsewhere).map(
      ([of, text]) => ({ type: "file", path: `${name}/${of}`, content: Buffer.from(text), mode: 0o644 }) as const,
    ),
  ]);
  const compressed = gzipSync(archive, { level: 9 });
  const size = publish(`${name}.tar.gz`, compressed);
  if (target.libc !== "musl")
    archives.push({ os: target.os, arch: target.arch, name, file, sha256: sha256(compressed) });
  console.log(`${name}: executable ${megabytes(content.length)}, archive ${megabytes(size)}`);
}
publish("unghost.krew.yaml", Buffer.from(krewManifest(version, places.downloads, archives)));
publish("unghost.rb", Buffer.from(homebrewFormula(version, places.downloads, archives)));
writeFileSync(join(OUT, "SHA256SUMS"), sums.join(""));
if (places.warning !== undefined) console.warn(places.warning);

function documentsOf(inside: typeof packages) {
  return {
    LICENSE: readFileSync("LICENSE", "utf8"),
    "THIRD-PARTY-LICENCES": thirdPartyLicences(engineVersion(), inside),
    "sbom.cdx.json": billOfMaterials(version, engineVersion(), inside),
    "README.md": readFileSync("README.md", "utf8"),
  };
}

function publish(file: string, content: Buffer): number {
  writeFileSync(join(OUT, file), content);
  sums.push(`${sha256(content)}  ${file}\n`);
  return content.length;
}

function sha256(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
