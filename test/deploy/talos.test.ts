import { expect, test } from "vitest";
import { parse } from "yaml";
import { extensionFiles } from "../../scripts/release/talos-extension.ts";
import { talosFiles } from "../../src/boot/install/platforms.ts";

const talos = talosFiles({ stateDir: "/var/lib/unghost", bootArgs: [] }, "1.2.3");

/** Documented field names of Talos, as `parent: children`; it refuses a document with an unknown one. */
const SERVICE_FIELDS: Readonly<Record<string, readonly string[]>> = {
  "": ["name", "container", "depends", "restart", "logToConsole"],
  container: ["entrypoint", "environment", "environmentFile", "args", "mounts", "security"],
  mounts: ["source", "destination", "type", "options"],
  security: ["writeableSysfs", "maskedPaths", "readonlyPaths", "writeableRootfs", "rootfsPropagation"],
  depends: ["service", "path", "network", "time", "configuration"],
};
const MANIFEST_FIELDS: Readonly<Record<string, readonly string[]>> = {
  "": ["version", "metadata"],
  metadata: ["name", "version", "author", "description", "compatibility", "extraInfo"],
  compatibility: ["talos"],
  talos: ["version"],
};
const PATCH_FIELDS: Readonly<Record<string, readonly string[]>> = {
  "": ["apiVersion", "kind", "name", "configFiles", "environment"],
};

function unknownFields(document: unknown, known: Readonly<Record<string, readonly string[]>>, parent = ""): string[] {
  if (Array.isArray(document)) return document.flatMap((one) => unknownFields(one, known, parent));
  if (typeof document !== "object" || document === null) return [];
  return Object.entries(document).flatMap(([key, value]) => [
    ...(known[parent]?.includes(key) ? [] : [`${parent}.${key}`]),
    ...unknownFields(value, known, key),
  ]);
}

test("service, manifest and machine-config patch use only fields that Talos documents", () => {
  expect(unknownFields(parse(talos.service), SERVICE_FIELDS)).toEqual([]);
  expect(unknownFields(parse(talos.manifest), MANIFEST_FIELDS)).toEqual([]);
  expect(unknownFields(parse(talos.machineConfigPatch), PATCH_FIELDS)).toEqual([]);
});

test("they pass Talos' own validation", () => {
  const service = parse(talos.service) as { name: string; restart: string; depends: object[] };
  const patch = parse(talos.machineConfigPatch) as { kind: string; name: string; environment: string[] };
  expect(service.name).toMatch(/^[-_a-z0-9]+$/);
  expect(["always", "never", "untilSuccess"]).toContain(service.restart);
  for (const dependency of service.depends) expect(Object.keys(dependency)).toHaveLength(1);
  expect(patch).toMatchObject({ kind: "ExtensionServiceConfig", name: service.name });
  expect(patch.environment.length).toBeGreaterThan(0);
});

test("the extension has the program, the service and a path for each mount, each directory once and before its content", () => {
  const files = extensionFiles(talos, [
    { type: "directory", path: "usr/", mode: 0o755 },
    { type: "directory", path: "usr/bin/", mode: 0o755 },
    { type: "directory", path: "host/", mode: 0o755 },
    { type: "file", path: "usr/bin/unghost", content: Buffer.from("program"), mode: 0o755 },
  ]);
  const paths = files.map(({ path }) => path);
  const container = "rootfs/usr/local/lib/containers/unghost";

  expect(paths[0]).toBe("manifest.yaml");
  expect(paths).toEqual(
    expect.arrayContaining([
      "rootfs/usr/local/etc/containers/unghost.yaml",
      `${container}/unghost`,
      `${container}/host/var/`,
      `${container}/host/run/`,
      `${container}/host/proc/`,
      `${container}/host/etc/os-release`,
    ]),
  );
  expect(new Set(paths).size).toBe(paths.length);
  for (const [index, path] of paths.entries()) {
    const parent = path.replace(/[^/]+\/?$/, "");
    if (parent !== "") expect(paths.slice(0, index)).toContain(parent);
    expect(path).toMatch(/^(manifest\.yaml|rootfs\/)/);
  }
  // Talos refuses an extension with other files, or with a world-writable one.
  for (const { type, path } of files) {
    if (type !== "directory" && path !== "manifest.yaml") expect(path).toMatch(/^rootfs\/usr\/local\//);
  }
  for (const entry of files) if (entry.type !== "symlink") expect(entry.mode & 0o002).toBe(0);
});
