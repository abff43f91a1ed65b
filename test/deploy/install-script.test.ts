import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { run } from "../../lab/command.ts";
import { makeAuthority } from "../../lab/stub-api/certificates.ts";
import manifest from "../../package.json" with { type: "json" };
import { tar } from "../../src/bundle/tar.ts";
import { tempDir } from "../support/temp-dir.ts";

const SCRIPT = "deploy/install.sh";
const ARCH = process.arch === "arm64" ? "arm64" : "amd64";
const NAME = `unghost-${manifest.version}-linux-${ARCH}`;

interface Release {
  readonly dir: string;
  readonly binDir: string;
  readonly install: (env?: Readonly<Record<string, string>>) => ReturnType<typeof run>;
}

/** A release whose program is a script, in a directory. */
function release(): Release {
  const temporary = tempDir();
  onTestFinished(() => temporary.remove());
  const dir = temporary.path;
  const program = Buffer.from("#!/bin/sh\necho unghost from the archive\n");
  const archive = gzipSync(
    tar([
      { type: "directory", path: `${NAME}/`, mode: 0o755 },
      { type: "file", path: `${NAME}/unghost`, content: program, mode: 0o755 },
    ]),
  );
  writeFileSync(join(dir, `${NAME}.tar.gz`), archive);
  const sum = createHash("sha256").update(archive).digest("hex");
  writeFileSync(join(dir, "SHA256SUMS"), `${"0".repeat(64)}  other.tar.gz\n${sum}  ${NAME}.tar.gz\n`);
  const binDir = join(dir, "bin");
  mkdirSync(join(dir, "tmp"));
  const base = { PATH: "/usr/bin:/bin", TMPDIR: join(dir, "tmp") };
  const install = (env = {}) =>
    run(["sh", SCRIPT], {
      env: { ...base, UNGHOST_BASE_URL: `file://${dir}`, UNGHOST_BIN_DIR: binDir, ...env },
      timeoutMs: 60_000,
    });
  return { dir, binDir, install };
}

test("install.sh installs the program, is idempotent, and leaves nothing else", async () => {
  const { dir, binDir, install } = release();

  const first = await install();
  const second = await install();

  expect(first).toMatchObject({ code: 0, stderr: "" });
  expect(first.stdout).toContain("unghost from the archive");
  expect(second.code).toBe(0);
  expect(readdirSync(binDir)).toEqual(["unghost"]);
  expect(readdirSync(join(dir, "tmp"))).toEqual([]);
});

test.each([
  ["x86_64", "darwin-amd64"],
  ["arm64", "darwin-arm64"],
])("install.sh takes the archive for a Mac with %s", async (machine, target) => {
  const { dir, install } = release();
  const programs = join(dir, "programs");
  mkdirSync(programs);
  writeFileSync(join(programs, "uname"), `#!/bin/sh\n[ "$1" = -s ] && echo Darwin || echo ${machine}\n`, {
    mode: 0o755,
  });

  const { code, stderr } = await install({ PATH: `${programs}:/usr/bin:/bin` });

  expect(code).toBe(1);
  expect(stderr).toContain(`unghost-${manifest.version}-${target}.tar.gz`);
});

test.each<[string, (release: Release) => Readonly<Record<string, string>>, string]>([
  [
    "the archive was changed",
    ({ dir }) => {
      writeFileSync(join(dir, `${NAME}.tar.gz`), "x", { flag: "a" });
      return {};
    },
    "was expected. Nothing was installed",
  ],
  ["its given checksum differs", () => ({ UNGHOST_SHA256: "1".repeat(64) }), "was expected"],
  [
    "SHA256SUMS does not contain it",
    ({ dir }) => {
      writeFileSync(join(dir, "SHA256SUMS"), "");
      return {};
    },
    "does not name",
  ],
  ["the address is not https", () => ({ UNGHOST_BASE_URL: "http://127.0.0.1:1" }), "is not https"],
  ["there is no such archive", () => ({ UNGHOST_VERSION: "9.9.9" }), "could not be downloaded"],
])("install.sh installs nothing when %s", async (_, spoil, complaint) => {
  const made = release();

  const { code, stderr } = await made.install(spoil(made));

  expect([code, stderr]).toEqual([1, expect.stringContaining(complaint)]);
  expect(existsSync(made.binDir)).toBe(false);
});

interface Server {
  readonly url: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Serves a release over https to a wget that trusts it, on a machine without curl. */
async function serve(
  { dir }: Release,
  locationOf: (path: string, port: number) => string | undefined,
): Promise<Server> {
  const authority = makeAuthority(dir, "authority");
  const { cert, key } = authority.issue("/CN=127.0.0.1", { san: "IP:127.0.0.1" });
  const server = createServer({ cert, key }, ({ url = "/" }, response) => {
    const { port } = server.address() as AddressInfo;
    const location = locationOf(url, port);
    if (location !== undefined) response.writeHead(302, { location }).end();
    else response.end(readFileSync(join(dir, basename(url))));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const programs = join(dir, "programs");
  mkdirSync(programs);
  const needed = ["awk", "chmod", "cp", "cut", "gzip", "mkdir", "mktemp", "mv", "rm", "sed", "sh", "sha256sum"];
  for (const name of [...needed, "tail", "tar", "tr", "uname", "wget"]) {
    const path = ["/bin", "/usr/bin"].map((place) => join(place, name)).find((place) => existsSync(place));
    symlinkSync(path ?? `/missing/${name}`, join(programs, name));
  }
  writeFileSync(join(dir, "ca.crt"), authority.cert);
  writeFileSync(join(dir, "wgetrc"), `ca_certificate = ${join(dir, "ca.crt")}\n`);
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, env: { UNGHOST_BASE_URL: url, PATH: programs, WGETRC: join(dir, "wgetrc") } };
}

const hasWget = existsSync("/usr/bin/wget");

test.skipIf(!hasWget)("install.sh follows wget's redirections over https (skipped without wget)", async () => {
  const made = release();
  const { env } = await serve(made, (path, port) =>
    path.startsWith("/next/") ? undefined : `https://127.0.0.1:${port}/next${path}`,
  );

  const { code, stdout, stderr } = await made.install(env);

  expect([code, stdout]).toEqual([0, expect.stringContaining("unghost from the archive")]);
  expect(stderr).toContain("UNGHOST_SHA256 is not set");
});

test.skipIf(!hasWget)("install.sh refuses a redirection of wget to http (skipped without wget)", async () => {
  const made = release();
  const { env } = await serve(made, (path) => `http://127.0.0.1:1${path}`);

  const { code, stderr } = await made.install(env);

  expect([code, stderr]).toEqual([1, expect.stringContaining("is not https")]);
  expect(existsSync(made.binDir)).toBe(false);
});

test("install.sh has the version of package.json, and does nothing when its download was truncated", async () => {
  const text = readFileSync(SCRIPT, "utf8");
  const { binDir, dir, install } = release();

  expect(text).toContain(`UNGHOST_VERSION:-${manifest.version}}`);
  writeFileSync(join(dir, "cut.sh"), text.slice(0, text.lastIndexOf("main")));
  const cut = await run(["sh", join(dir, "cut.sh")], { env: { PATH: "/usr/bin:/bin", UNGHOST_BIN_DIR: binDir } });
  expect([cut.code, existsSync(binDir)]).toEqual([0, false]);
  expect((await install()).code).toBe(0);
});
