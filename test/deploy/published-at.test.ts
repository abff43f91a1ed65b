import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { homebrewFormula, krewManifest } from "../../scripts/release/plugin-manifests.ts";
import {
  PLACEHOLDER_HOST,
  type PublishedAt,
  publishedAt,
  publishedChart,
  publishedInstallScript,
  publishedManifest,
} from "../../scripts/release/published-at.ts";

const HOST = "registry.company.org/team";
const ARCHIVES = [
  { os: "linux", arch: "amd64", name: "unghost-1.2.3-linux-amd64", file: "unghost", sha256: "a".repeat(64) },
] as const;

/** Every text of a release that names a host. */
function textsOf(places: PublishedAt): Readonly<Record<string, string>> {
  const chart = publishedChart("deploy/helm/unghost", places);
  const contents = chart.map((entry) => (entry.type === "file" ? Buffer.from(entry.content).toString() : ""));
  return {
    chart: contents.join("\n"),
    manifest: publishedManifest(readFileSync("deploy/kubernetes/unghost.yaml", "utf8"), places),
    "install.sh": publishedInstallScript(readFileSync("deploy/install.sh", "utf8"), places),
    krew: krewManifest("1.2.3", places.downloads, ARCHIVES),
    homebrew: homebrewFormula("1.2.3", places.downloads, ARCHIVES),
  };
}

test("one variable sets every host of a release", () => {
  const places = publishedAt({ RELEASE_HOST: HOST }, "1.2.3");

  expect(places).toEqual({
    image: `${HOST}/unghost`,
    talosImage: `${HOST}/unghost-talos`,
    charts: `${HOST}/charts`,
    downloads: `https://${HOST}/unghost/v1.2.3`,
    packages: `https://${HOST}/unghost/packages`,
  });
  for (const [name, text] of Object.entries(textsOf(places))) {
    expect([name, text.includes(HOST), text.includes(PLACEHOLDER_HOST)]).toEqual([name, true, false]);
  }
});

test.each([["UNGHOST_IMAGE"], ["UNGHOST_TALOS_IMAGE"], ["UNGHOST_BASE_URL"], ["UNGHOST_PACKAGES_URL"]])(
  "%s goes before it",
  (variable) => {
    const places = publishedAt({ RELEASE_HOST: HOST, [variable]: "https://other.company.org/x" }, "1.2.3");

    expect(Object.values(places).filter((place) => place === "https://other.company.org/x")).toHaveLength(1);
  },
);

test.each<readonly [Readonly<Record<string, string>>]>([
  [{}],
  [{ RELEASE_HOST: "" }],
  [{ UNGHOST_IMAGE: `${HOST}/unghost`, UNGHOST_TALOS_IMAGE: `${HOST}/talos` }],
])("warns of placeholders with %j", (env) => {
  expect(publishedAt(env, "1.2.3").warning).toContain("RELEASE_HOST is not set");
});

test("without it install.sh has no default, and no other placeholder host is in what is published", () => {
  const texts = textsOf(publishedAt({}, "1.2.3"));

  expect(texts["install.sh"]).toBe(readFileSync("deploy/install.sh", "utf8"));
  for (const text of Object.values(texts)) {
    const hosts = text.matchAll(/[\w.-]+\.(?:example|invalid|test)\b/g);
    expect([...hosts].filter(([host]) => host !== PLACEHOLDER_HOST)).toEqual([]);
  }
});

test("values, manifest and documents name the variable beside the placeholder", () => {
  for (const path of ["deploy/helm/unghost/values.yaml", "deploy/kubernetes/kustomization.yaml", "docs/install.md"]) {
    const text = readFileSync(path, "utf8");
    expect([path, text.includes(PLACEHOLDER_HOST), text.includes("RELEASE_HOST")]).toEqual([path, true, true]);
  }
});

test("the chart's default image is the placeholder", () => {
  const { image } = parse(readFileSync("deploy/helm/unghost/values.yaml", "utf8")) as { image: { repository: string } };
  expect(image.repository).toBe(`${PLACEHOLDER_HOST}/unghost`);
});
