import type { BundledPackage } from "./bundled-packages.ts";

/** The SBOM in CycloneDX 1.6. It has neither a date nor a serial number, so that it is reproducible. */
export function billOfMaterials(version: string, engine: string, packages: readonly BundledPackage[]): string {
  const component = (name: string, of: string, license: string, purl: string) => ({
    type: "library",
    "bom-ref": purl,
    name,
    version: of,
    licenses: [/[ ()]/.test(license) ? { expression: license } : { license: { id: license } }],
    purl,
  });
  const libraries = packages.map(({ name, version: of, license, purl }) => component(name, of, license, purl));
  const root = `pkg:generic/unghost@${version}`;
  const components = [component("bun", engine, "MIT", `pkg:npm/bun@${engine}`), ...libraries];
  const bom = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: { type: "application", "bom-ref": root, name: "unghost", version, purl: root } },
    components,
    dependencies: [{ ref: root, dependsOn: components.map(({ purl }) => purl) }],
  };
  return `${JSON.stringify(bom, undefined, 2)}\n`;
}

/** The licences of all parts, with their texts if the packages contain them. */
export function thirdPartyLicences(engine: string, packages: readonly BundledPackage[]): string {
  const intro = `unghost contains the software below. unghost itself is under the Apache License 2.0: see LICENSE.

The engine is bun ${engine} (MIT). It links JavaScriptCore and WebKit's WTF (LGPL-2.0 and BSD) and other libraries statically;
https://bun.com/docs/project/license lists them with their licences and says how to relink the engine. The program can be built
with a relinked engine: see scripts/executable.ts in unghost's source. The launcher of the CNI guard links musl statically.`;
  const parts = packages.map(({ name, version, license, licenseText }) => {
    return `${name} ${version} (${license})\n\n${licenseText}`;
  });
  return `${[intro, ...parts].join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
}
