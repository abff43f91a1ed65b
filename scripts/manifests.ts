/** Renders the chart with its defaults into deploy/kubernetes, for use without helm. Needs the lab's helm. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import { ensureHelm } from "../lab/cluster/tools.ts";

const MANIFEST = "deploy/kubernetes/unghost.yaml";
/** The chart refuses its own placeholder, which a kustomization replaces. */
const REFUSED = "registry.example/unghost";
const RENDERED = "registry.invalid/unghost";
const RENDER = ["template", "unghost", "deploy/helm/unghost", "--namespace=unghost", "--set=namespace.create=true"];
const IMAGE = `--set=image.repository=${RENDERED}`;

const rendered = execFileSync(await ensureHelm(), [...RENDER, IMAGE, "--no-hooks", "--kube-version=1.34.0"], {
  encoding: "utf8",
});
const objects = rendered
  .replaceAll(RENDERED, REFUSED)
  .replaceAll(/^ *app\.kubernetes\.io\/managed-by: Helm\n/gm, "")
  .replaceAll(/^# Source: .*\n/gm, "")
  .split(/^---\n/m)
  .map((text) => text.trim())
  .filter((text) => parseAllDocuments(text).some((document) => document.toJS() !== null));
// A namespace comes before its objects.
const ordered = objects.toSorted((one, other) => Number(isNamespace(other)) - Number(isNamespace(one)));
const text = `# Rendered from deploy/helm/unghost by scripts/manifests.ts.\n${ordered.join("\n---\n")}\n`;

if (process.argv.includes("--check")) {
  if (readFileSync(MANIFEST, "utf8") !== text) {
    console.error(`${MANIFEST} is not what the chart renders: run \`node scripts/manifests.ts\` and commit it`);
    process.exitCode = 1;
  }
} else {
  writeFileSync(MANIFEST, text);
}

function isNamespace(object: string): boolean {
  return /^kind: Namespace$/m.test(object);
}
