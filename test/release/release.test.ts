import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, onTestFinished, test } from "vitest";
import { run, runOrThrow } from "../../lab/command.ts";
import manifest from "../../package.json" with { type: "json" };
import { bundledPackages } from "../../scripts/release/bundled-packages.ts";
import { executableName, TARGETS } from "../../scripts/release/engines.ts";
import { parseJson, property } from "../../src/host/text.ts";
import { emulatorFiles, WITHOUT_RESTART } from "./emulator.ts";
import { readProgram } from "./executable-formats.ts";
import { unpackedImage } from "./image-layout.ts";
import { type Architecture, muslRoot, runInRoot } from "./musl-root.ts";

const RELEASE = "dist/release";
const BUILD_MS = 600_000;

test("two builds of the release have the same bytes", async () => {
  const elsewhere = await mkdtemp(join(tmpdir(), "unghost-release-"));
  onTestFinished(() => rm(elsewhere, { recursive: true }));

  await runOrThrow([process.execPath, "scripts/release.ts", elsewhere], { timeoutMs: BUILD_MS });

  const sums = readFileSync(join(RELEASE, "SHA256SUMS"), "utf8");
  expect(readFileSync(join(elsewhere, "SHA256SUMS"), "utf8")).toBe(sums);
  for (const [, sum, file = ""] of sums.matchAll(/^(\w+) {2}(.+)$/gm)) {
    expect(
      createHash("sha256")
        .update(readFileSync(join(RELEASE, file)))
        .digest("hex"),
    ).toBe(sum);
  }
});

test("krew manifest and Homebrew formula contain the archives of this release with their checksums", () => {
  const sums = new Map(
    [...readFileSync(join(RELEASE, "SHA256SUMS"), "utf8").matchAll(/^(\w+) {2}(.+)$/gm)].map(([, sum, file = ""]) => [
      file,
      sum,
    ]),
  );
  for (const manifestOf of ["unghost.krew.yaml", "unghost.rb"]) {
    const text = readFileSync(join(RELEASE, manifestOf), "utf8");
    const systems = manifestOf === "unghost.rb" ? ["linux", "darwin"] : ["linux", "darwin", "windows"];
    for (const target of systems.flatMap((system) => [`${system}-amd64`, `${system}-arm64`])) {
      const archive = `unghost-${manifest.version}-${target}.tar.gz`;
      expect(text).toContain(archive);
      expect(text).toContain(sums.get(archive));
    }
  }
});

test("each archive contains an SBOM and the licence of everything in it", async () => {
  const dir = await mkdtemp(join(tmpdir(), "unghost-release-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  const archives = readdirSync(RELEASE).filter((name) => name.endsWith(".tar.gz"));
  const inside = ["bun", ...(await bundledPackages()).map(({ name }) => name)].toSorted();
  expect(inside).toEqual(expect.arrayContaining([...BUNDLED, "musl"]));
  expect(archives).toHaveLength(8);
  for (const archive of archives) {
    const name = archive.slice(0, -".tar.gz".length);
    await runOrThrow(["tar", "-xzf", join(RELEASE, archive), "-C", dir, `--exclude=${name}/unghost*`]);
    const read = (file: string) => readFileSync(join(dir, name, file), "utf8");
    const { bomFormat, components } = JSON.parse(read("sbom.cdx.json")) as BillOfMaterials;
    const licences = read("THIRD-PARTY-LICENCES");

    expect([archive, bomFormat, read("LICENSE")]).toEqual([archive, "CycloneDX", expect.stringContaining("Apache")]);
    const linked = archive.includes("-linux-") ? inside : inside.filter((one) => one !== "musl");
    expect(components.map((component) => component.name).toSorted()).toEqual(linked);
    const texts = new Map(licences.split(/^-{80}$/m).map((part) => [headingOf(part), part]));
    for (const { name: library, version } of components.filter((one) => one.name !== "bun")) {
      const text = texts.get(`${library} ${version}`) ?? "";
      // The licence itself, not its name alone.
      expect([library, /copyright|permission|redistribution/i.test(text), text.length > 500]).toEqual([
        library,
        true,
        true,
      ]);
    }
    expect(licences).toContain(`bun ${components.find((one) => one.name === "bun")?.version} (MIT)`);
  }
});

test.each(TARGETS.filter(({ os }) => os !== "linux"))("the program of $name is one that its system loads", (target) => {
  const program = readProgram(readFileSync(join(RELEASE, target.name, executableName("unghost", target))));

  expect(program).toEqual({ format: target.os === "darwin" ? "Mach-O" : "PE", cpu: target.arch, problems: [] });
});

interface BillOfMaterials {
  readonly bomFormat: string;
  readonly components: readonly { readonly name: string; readonly version: string }[];
}

/** `pino 10.0.0 (MIT)` without the licence. */
function headingOf(part: string): string {
  return part.trimStart().split(" (", 1)[0] ?? "";
}

/** What the program imports. */
const BUNDLED = Object.keys(manifest.dependencies);

/** As on a fresh machine: a root directory with the C library and the unpacked archive, and no other program. */
test.skipIf(process.arch !== "x64" || process.getuid?.() !== 0)(
  "the archive runs on a machine without Node",
  async () => {
    const name = `unghost-${manifest.version}-linux-amd64`;
    const root = await unpackedImage("amd64");
    await rm(join(root, "usr/bin/unghost"));
    await runOrThrow(["tar", "-xzf", join(RELEASE, `${name}.tar.gz`), "-C", root]);
    const unghost = (...args: readonly string[]) => runInRoot({ root }, join(root, name, "unghost"), args);
    const programs = await runOrThrow(["find", root, "-type", "f", "-perm", "-111", "-not", "-name", "*.so*"]);

    expect(programs.stdout.trim()).toBe(join(root, name, "unghost"));
    expect((await unghost("version")).stdout).toContain(`unghost ${manifest.version} (commit `);
    expect((await unghost("explain", 'failed to reserve sandbox name "a": name is reserved for "b"')).code).toBe(0);
    const empty = ["--no-kube", "--host-root", "/dev", "--state-dir", "/tmp/state"];
    expect((await unghost("doctor", ...empty)).code).toBe(1);
    expect((await unghost("scan", ...empty)).code).toBe(2);
    const boot = await unghost("boot", "--dry-run", "--strict", ...empty);
    expect([boot.code, boot.stdout]).toEqual([0, expect.stringContaining("Dry run: nothing was changed")]);
  },
);

/** The executable for arm64, in an emulator. */
async function emulatedUnghost(): Promise<readonly string[]> {
  const { emulator, glibc } = await emulatorFiles();
  return [emulator, "-L", glibc, join(RELEASE, "linux-arm64/unghost")];
}

test.skipIf(process.arch !== "x64")("the executable for arm64 watches and syncs files of CNI plugins", async () => {
  const dir = await mkdtemp(join(tmpdir(), "unghost-release-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  const [emulator = "", ...args] = await emulatedUnghost();
  const keep = [...args, "keep", "--verbose", "--host-root", dir, "--cni-cache-dir", "/results"];
  const keeper = spawn(emulator, keep, {
    env: WITHOUT_RESTART,
    stdio: ["ignore", "pipe", "inherit"],
    timeout: BUILD_MS,
  });
  onTestFinished(() => void keeper.kill("SIGKILL"));

  const logged: unknown[] = [];
  for await (const line of createInterface(keeper.stdout)) {
    logged.push(property(parseJson(line), "msg"));
    if (logged.length === 1) {
      await mkdir(join(dir, "results"));
      await writeFile(join(dir, "results/cbr0"), "{}");
    }
    if (logged.at(-1) === "CNI files synced") break;
  }

  expect([logged[0], logged.at(-1)]).toEqual(["CNI files are kept durable", "CNI files synced"]);
});

test.skipIf(process.arch !== "x64")("the executable for arm64 runs, system calls included", async () => {
  const unghost = await emulatedUnghost();

  const version = await run([...unghost, "version", "-o", "json"], { timeoutMs: BUILD_MS });
  const locked = await run([...unghost, "system-call", "flock", "exclusive"], { timeoutMs: BUILD_MS });

  expect(JSON.parse(version.stdout)).toMatchObject({ version: manifest.version, platform: "linux/arm64" });
  expect(locked).toMatchObject({ code: 0, stderr: "" });
});

const ROOTS = new Map<Architecture, Awaited<ReturnType<typeof muslRoot>>>([
  ["amd64", await muslRoot("amd64")],
  ["arm64", await muslRoot("arm64")],
]);

describe.each([...ROOTS])("the executable for %s with musl", (arch, musl) => {
  const where = "missing" in musl ? ` (not run here: ${musl.missing})` : "";

  test.skipIf("missing" in musl)(`runs, system calls included${where}`, async () => {
    if ("missing" in musl) throw new Error(musl.missing);
    const unghost = (...args: readonly string[]) => runInRoot(musl, join(RELEASE, `linux-${arch}-musl/unghost`), args);
    const empty = ["--no-kube", "--host-root", "/dev", "--state-dir", "/tmp/state"];

    const version = await unghost("version", "-o", "json");
    const explained = await unghost("explain", 'failed to reserve sandbox name "a": name is reserved for "b"');
    const locked = await unghost("system-call", "flock", "exclusive");
    const unmounted = await unghost("system-call", "umount", "/", "/proc");
    const scanned = await unghost("scan", ...empty);
    const examined = await unghost("doctor", ...empty);
    const boot = await unghost("boot", "--dry-run", "--strict", ...empty);

    expect(JSON.parse(version.stdout)).toMatchObject({ version: manifest.version, platform: `linux/${arch}` });
    expect(explained.code).toBe(0);
    expect(locked).toMatchObject({ code: 0, stderr: "" });
    expect(unmounted).toMatchObject({ code: 0, stderr: "" });
    expect([scanned.code, examined.code, boot.code]).toEqual([2, 1, 0]);
    expect(boot.stdout).toContain("Dry run: nothing was changed");
  });
});
