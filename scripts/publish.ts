/**
 * Publishes what `make release image talos` built to RELEASE_HOST: image, Talos extension and chart, and for Artifact Hub
 * whose the chart is. Prints each with its digest, one a line, for signing. crane and helm are built with Go; who is logged in with docker, crane or helm
 * is logged in here.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ensureHelm } from "../lab/cluster/tools.ts";
import { runOrThrow } from "../lab/command.ts";
import { definedEnv, goBuild } from "../lab/tools.ts";
import manifest from "../package.json" with { type: "json" };
import { ARTIFACT_HUB_TAG, artifactHubLayout } from "./release/artifact-hub.ts";
import { CRANE } from "./release/crane.ts";
import { publishedAt } from "./release/published-at.ts";

const UPLOAD_MS = 600_000;

const { version } = manifest;
const { image, talosImage, charts, warning } = publishedAt(process.env, version);
if (warning !== undefined) fail(warning);
/** For a registry without TLS, on this machine or in a test. */
const isPlain = process.env["PLAIN_HTTP"] === "1";
const chart = `dist/release/unghost-chart-${version}.tgz`;
for (const built of ["dist/image", "dist/talos", chart]) {
  if (!existsSync(built)) fail(`${built} is not there: run make release image talos first, with the same RELEASE_HOST`);
}

const craneDir = await goBuild("crane", CRANE.module, CRANE.version, ["cmd/crane"]);
if (typeof craneDir !== "string") fail(craneDir.reason);
const crane = join(craneDir, "crane");
const env = definedEnv();
const run = async (words: readonly string[]): Promise<string> =>
  (await runOrThrow([...words], { env, timeoutMs: UPLOAD_MS })).stdout.trim();

await pushLayout("dist/image", `${image}:${version}`);
await pushLayout("dist/talos", `${talosImage}:${version}`);
const pushed = await run([await ensureHelm(), "push", chart, `oci://${charts}`, ...(isPlain ? ["--plain-http"] : [])]);
console.log(
  `${charts}/unghost@${/sha256:[0-9a-f]{64}/.exec(pushed)?.[0] ?? fail(`helm printed no digest: ${pushed}`)}`,
);
// Artifact Hub gives the id to who registers the chart there.
const repositoryId = process.env["ARTIFACTHUB_REPOSITORY_ID"];
if (repositoryId) {
  const dir = mkdtempSync(join(tmpdir(), "unghost-artifact-hub-"));
  try {
    for (const [path, content] of artifactHubLayout(repositoryId)) {
      mkdirSync(dirname(join(dir, path)), { recursive: true });
      writeFileSync(join(dir, path), content);
    }
    await pushLayout(dir, `${charts}/unghost:${ARTIFACT_HUB_TAG}`);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

async function pushLayout(dir: string, name: string): Promise<void> {
  const flags = isPlain ? ["--insecure"] : [];
  const printed = await run([crane, "push", ...flags, dir, name]);
  console.log(printed.split("\n").at(-1));
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
