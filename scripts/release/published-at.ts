import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TarEntry } from "../../src/bundle/tar.ts";

/** Reserved by RFC 2606: nothing can be downloaded from there. The chart in deploy/ contains it, too. */
export const PLACEHOLDER_HOST = "registry.example";

/** The URLs of a release. */
export interface PublishedAt {
  readonly image: string;
  readonly talosImage: string;
  /** Of the chart, as an OCI artifact. */
  readonly charts: string;
  /** Of the archives, without a slash at its end. */
  readonly downloads: string;
  /** Of the repository for apt and dnf, without a slash at its end. It has no version: later ones go to the same place. */
  readonly packages: string;
  /** Printed if one of them is the placeholder. */
  readonly warning?: string;
}

/** RELEASE_HOST sets all; each has its own variable, too. */
export function publishedAt(env: Readonly<Record<string, string | undefined>>, version: string): PublishedAt {
  const host = env["RELEASE_HOST"] || PLACEHOLDER_HOST;
  const places = {
    image: env["UNGHOST_IMAGE"] || `${host}/unghost`,
    talosImage: env["UNGHOST_TALOS_IMAGE"] || `${host}/unghost-talos`,
    charts: env["UNGHOST_CHARTS"] || `${host}/charts`,
    downloads: env["UNGHOST_BASE_URL"] || `https://${host}/unghost/v${version}`,
    packages: env["UNGHOST_PACKAGES_URL"] || `https://${host}/unghost/packages`,
  };
  if (!Object.values(places).some((place) => place.includes(PLACEHOLDER_HOST))) return places;
  const warning = `RELEASE_HOST is not set: image and download addresses are the placeholder ${PLACEHOLDER_HOST}. Set it to publish: make release RELEASE_HOST=registry.company.org/team`;
  return { ...places, warning };
}

/** install.sh for publishing: with its download URL. */
export function publishedInstallScript(script: string, { downloads, warning }: PublishedAt): string {
  return warning === undefined
    ? replaced(script, "${UNGHOST_BASE_URL:-}", `\${UNGHOST_BASE_URL:-${downloads}}`)
    : script;
}

export function publishedManifest(text: string, { image }: PublishedAt): string {
  return replaced(text, `image: ${PLACEHOLDER_HOST}/unghost:`, `image: ${image}:`);
}

/** Every file of the chart in the layout of `helm package`, with the image of this release and where it is from. */
export function publishedChart(dir: string, places: PublishedAt): readonly TarEntry[] {
  const paths = readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
  return paths.map((path) => {
    const content = Buffer.from(publishedFile(path.slice(dir.length + 1), readFileSync(path, "utf8"), places));
    return { type: "file", path: join("unghost", path.slice(dir.length)), content, mode: 0o644 };
  });
}

function publishedFile(name: string, text: string, { image, downloads, warning }: PublishedAt): string {
  if (name === "values.yaml" || name === "README.md") return replaced(text, `${PLACEHOLDER_HOST}/unghost`, image);
  return name === "Chart.yaml" && warning === undefined ? `${text}home: ${downloads}\n` : text;
}

function replaced(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`${JSON.stringify(from)} is not there to be replaced`);
  return text.replaceAll(from, () => to);
}
