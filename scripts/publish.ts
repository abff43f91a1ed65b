/**
 * Publishes what `make release image talos` built to RELEASE_HOST: image, Talos extension and chart. Prints each with
 * its digest, one a line, for signing. crane and helm are built with Go; who is logged in with docker, crane or helm
 * is logged in here.
 */
import { existsSync } from "node:fs";
import { ensureHelm } from "../lab/cluster/tools.ts";
import { runOrThrow } from "../lab/command.ts";
import { definedEnv, goBuild } from "../lab/tools.ts";
import manifest from "../package.json" with { type: "json" };
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
const env = definedEnv();
const run = async (words: readonly string[]): Promise<string> =>
  (await runOrThrow([...words], { env, timeoutMs: UPLOAD_MS })).stdout.trim();

for (const [layout, name] of [
  ["dist/image", image],
  ["dist/talos", talosImage],
] as const) {
  const flags = isPlain ? ["--insecure"] : [];
  console.log((await run([`${craneDir}/crane`, "push", ...flags, layout, `${name}:${version}`])).split("\n").at(-1));
}
const pushed = await run([await ensureHelm(), "push", chart, `oci://${charts}`, ...(isPlain ? ["--plain-http"] : [])]);
console.log(
  `${charts}/unghost@${/sha256:[0-9a-f]{64}/.exec(pushed)?.[0] ?? fail(`helm printed no digest: ${pushed}`)}`,
);

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
