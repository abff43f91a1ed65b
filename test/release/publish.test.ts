import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { run, runOrThrow } from "../../lab/command.ts";
import { definedEnv, goBuild } from "../../lab/tools.ts";
import manifest from "../../package.json" with { type: "json" };
import { CRANE } from "../../scripts/release/crane.ts";

const ACTIONLINT = { module: "github.com/rhysd/actionlint", version: "v1.7.12" } as const;
const { version } = manifest;

test("make publish pushes image, extension and chart, and prints what can be signed", async () => {
  const crane = join(await built("crane", CRANE, "cmd/crane"), "crane");
  const host = await registry(crane);

  const { stdout } = await runOrThrow(["make", "--silent", "publish"], {
    env: { ...definedEnv(), RELEASE_HOST: host, PLAIN_HTTP: "1", ARTIFACTHUB_REPOSITORY_ID: "some-id" },
    timeoutMs: 600_000,
  });

  const published = stdout.trim().split("\n");
  expect(published.map((line) => line.replace(/@sha256:[0-9a-f]{64}$/, ""))).toEqual([
    `${host}/unghost`,
    `${host}/unghost-talos`,
    `${host}/charts/unghost`,
    `${host}/charts/unghost`,
  ]);
  const { stdout: index } = await runOrThrow([crane, "manifest", "--insecure", `${host}/unghost:${version}`]);
  const { manifests } = JSON.parse(index) as { readonly manifests: readonly { platform: { architecture: string } }[] };
  expect(manifests.map(({ platform }) => platform.architecture).toSorted()).toEqual(["amd64", "arm64"]);
  expect(await artifactHubFile(crane, `${host}/charts/unghost`)).toBe("repositoryID: some-id\n");
  for (const line of published) await runOrThrow([crane, "digest", "--insecure", line]);
});

/** What Artifact Hub reads: the one layer of this type below its own tag. */
async function artifactHubFile(crane: string, chart: string): Promise<string> {
  const { stdout } = await runOrThrow([crane, "manifest", "--insecure", `${chart}:artifacthub.io`]);
  const { layers } = JSON.parse(stdout) as { layers: readonly { mediaType: string; digest: string }[] };
  expect(layers.map(({ mediaType }) => mediaType)).toEqual([
    "application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml",
  ]);
  return (await runOrThrow([crane, "blob", "--insecure", `${chart}@${layers[0]?.digest}`])).stdout;
}

test("make publish without RELEASE_HOST pushes nothing and names what to set", async () => {
  const { code, stderr } = await run(["make", "--silent", "publish"], { env: { ...definedEnv(), RELEASE_HOST: "" } });

  expect([code, stderr]).toEqual([2, expect.stringContaining("RELEASE_HOST is not set")]);
});

test("the workflows are valid", async () => {
  const actionlint = join(await built("actionlint", ACTIONLINT, "cmd/actionlint"), "actionlint");

  const { code, stdout } = await run([
    actionlint,
    "-no-color",
    ".github/workflows/ci.yml",
    ".github/workflows/release.yml",
  ]);

  expect([code, stdout]).toEqual([0, ""]);
});

async function built(name: string, { module, version: of }: typeof CRANE | typeof ACTIONLINT, path: string) {
  const dir = await goBuild(name, module, of, [path]);
  if (typeof dir !== "string") throw new Error(dir.reason);
  return dir;
}

/** A registry on loopback, in memory. */
async function registry(crane: string): Promise<string> {
  const port = await freePort();
  const server = spawn(crane, ["registry", "serve", `--address=127.0.0.1:${port}`], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(async () => {
    server.kill();
    await once(server, "exit");
  });
  // It logs the address that it listens on.
  await once(server.stderr, "data");
  return `127.0.0.1:${port}`;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
