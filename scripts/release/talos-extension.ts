import { parse } from "yaml";
import type { TalosFiles } from "../../src/boot/install/platforms.ts";
import type { TarEntry } from "../../src/bundle/tar.ts";

/** The path of an extension service's root directory on Talos. */
const CONTAINER = "rootfs/usr/local/lib/containers/unghost";
const SERVICE = "rootfs/usr/local/etc/containers/unghost.yaml";

/** manifest.yaml and rootfs/ of a Talos system extension, around the files of the image. */
export function extensionFiles(talos: TalosFiles, image: readonly TarEntry[]): readonly TarEntry[] {
  const inside = [...image.map(inContainer), ...mountPoints(talos)];
  const directories = [...new Set([SERVICE, ...inside.map(({ path }) => path.replace(/\/$/, ""))].flatMap(parents))];
  const named = new Set(directories);
  return [
    { type: "file", path: "manifest.yaml", content: Buffer.from(talos.manifest), mode: 0o644 },
    ...directories.toSorted().map((path) => ({ type: "directory", path: `${path}/`, mode: 0o755 }) as const),
    { type: "file", path: SERVICE, content: Buffer.from(talos.service), mode: 0o644 },
    ...inside.filter(({ type, path }) => type !== "directory" || !named.has(path.replace(/\/$/, ""))),
  ];
}

/** The service's entry point is ./unghost. */
function inContainer(entry: TarEntry): TarEntry {
  return { ...entry, path: `${CONTAINER}/${entry.path === "usr/bin/unghost" ? "unghost" : entry.path}` };
}

/** The root directory is read-only: the service's mounts need their mount points. */
function mountPoints({ service }: TalosFiles): readonly TarEntry[] {
  const { container } = parse(service) as { container: { mounts: { destination: string }[] } };
  return container.mounts.map(({ destination }) => {
    const path = `${CONTAINER}${destination}`;
    return destination.endsWith("/os-release")
      ? { type: "file", path, content: Buffer.alloc(0), mode: 0o644 }
      : { type: "directory", path: `${path}/`, mode: 0o755 };
  });
}

function parents(path: string): readonly string[] {
  const parts = path.split("/").slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}
