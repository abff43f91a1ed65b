import { createReadStream } from "node:fs";
import { appendFile, copyFile, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { inDebian } from "../../lab/debian-chroot.ts";
import manifest from "../../package.json" with { type: "json" };
import { addRepository, repositoryRootfs } from "../../scripts/release/package-repository.ts";
import { tempDir } from "../support/temp-dir.ts";

const PACKAGES = "dist/packages";
const ARCH = process.arch === "arm64" ? { deb: "arm64", rpm: "aarch64" } : { deb: "amd64", rpm: "x86_64" };
const DEB = `unghost_${manifest.version}_${ARCH.deb}.deb`;
const RPM = `unghost-${manifest.version}-1.${ARCH.rpm}.rpm`;

/** apt without the Debian's own sources, and dnf without any: nothing but this repository is asked. */
const APT = "apt-get -o Dir::Etc::SourceList=/dev/null -o Acquire::Retries=0 -q";
const DNF = "dnf --quiet --setopt=reposdir=/etc/yum.repos.d --releasever=1";

test("apt installs the package from the signed repository, and refuses one that was changed", async () => {
  const { dir, debian } = await repository(await secretKey());
  const trust = "cp /mnt/unghost.sources /etc/apt/sources.list.d/";

  const installed = await debian(`${trust}
    ${APT} update >&2 && ${APT} install --yes unghost >&2 && unghost version && apt-cache policy unghost`);
  await appendFile(join(dir, DEB), "changed");
  const changed = await debian(`${trust}
    ${APT} update >&2; ${APT} install --yes unghost 2>&1 || true`);
  await appendFile(join(dir, "Packages.gz"), "changed");
  await appendFile(join(dir, "Packages"), "changed");
  const changedList = await debian(`${trust}
    ${APT} update 2>&1 || true`);

  expect(installed).toMatch(new RegExp(`^unghost ${manifest.version} \\(commit `));
  expect(installed).toContain(`Candidate: ${manifest.version}`);
  expect(changed).toMatch(/File has unexpected size|Hash Sum mismatch/);
  expect(changedList).toMatch(/File has unexpected size|Hash Sum mismatch/);
});

test("apt accepts no repository that another key signed", async () => {
  const { dir, debian } = await repository(await secretKey());
  const other = await repository(await secretKey());
  await copyFile(join(other.dir, "InRelease"), join(dir, "InRelease"));

  const printed = await debian(`cp /mnt/unghost.sources /etc/apt/sources.list.d/
    ${APT} update 2>&1 || true; ${APT} install --yes unghost 2>&1 || true`);

  expect(printed).toContain("NO_PUBKEY");
  expect(printed).toContain("Unable to locate package unghost");
});

test("dnf downloads the package from the signed repository, and refuses metadata that was changed", async () => {
  const { dir, debian } = await repository(await secretKey());
  // Debian's dnf knows no glibc of an rpm distribution, so that nothing with a dependency can be installed with it.
  const script = `mkdir -p /etc/yum.repos.d && cp /mnt/unghost.repo /etc/yum.repos.d/
    ${DNF} --assumeyes download --destdir=/tmp unghost`;

  const installed = await debian(`${script} >&2
    rpm -i --nodeps /tmp/${RPM} 2>/dev/null && unghost version`);
  const metadata = join(dir, "repodata/repomd.xml");
  await appendFile(metadata, "\n");
  const changed = await debian(`${script} 2>&1 || true`);

  expect(installed).toMatch(new RegExp(`^unghost ${manifest.version} \\(commit `));
  expect(changed).toMatch(/signature|GPG/i);
});

test("without a key both say that nothing is verified", async () => {
  const { dir } = await repository(undefined);

  expect(await readFile(join(dir, "unghost.sources"), "utf8")).toContain("Trusted: yes\n");
  expect(await readFile(join(dir, "unghost.repo"), "utf8")).toContain("repo_gpgcheck=0\n");
});

/** A repository on loopback with the packages for this architecture, and a Debian that can reach it. */
async function repository(signingKey: string | undefined) {
  const dir = directory();
  for (const name of [DEB, RPM]) await copyFile(join(PACKAGES, name), join(dir, name));
  await addRepository({ dir, url: await served(dir), signingKey });
  const rootfs = await repositoryRootfs();
  return { dir, debian: (script: string): Promise<string> => inDebian(rootfs, dir, script) };
}

async function served(dir: string): Promise<string> {
  const server = createServer(({ url = "/" }, response) => {
    const file = createReadStream(join(dir, new URL(url, "http://localhost").pathname));
    file.on("error", () => response.writeHead(404).end());
    file.pipe(response);
  });
  await new Promise<void>((listening) => void server.listen(0, "127.0.0.1", listening));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A new OpenPGP key without a passphrase. */
async function secretKey(): Promise<string> {
  const script = `export GNUPGHOME=/tmp/gnupg && mkdir -m 700 "$GNUPGHOME"
    gpg --batch --quiet --passphrase '' --quick-generate-key 'A test <test@localhost>' ed25519 sign never
    gpg --batch --armor --export-secret-keys`;
  return inDebian(await repositoryRootfs(), directory(), script);
}

function directory(): string {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  return dir.path;
}
