import { readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { inDebian } from "../../lab/debian-chroot.ts";
import { debianRootfs } from "../../lab/systemd/rootfs.ts";
import { PACKAGE_TIME } from "./package-files.ts";

/** Debian with apt, dnf, and what makes their repositories. */
export function repositoryRootfs(): Promise<string> {
  return debianRootfs("repository-rootfs", [
    "apt-utils",
    "createrepo-c",
    "gpg",
    "gpg-agent",
    "dnf",
    "dnf-plugins-core",
    "rpm",
  ]);
}

export interface PackageRepository {
  /** Has the packages, and becomes the repository. */
  readonly dir: string;
  /** Where `dir` will be served, without a slash at its end. */
  readonly url: string;
  /** An OpenPGP secret key without a passphrase, in ASCII armour. */
  readonly signingKey: string | undefined;
}

/**
 * Adds to a directory of packages what apt and dnf read: Packages and Release, repodata, and the files with which a
 * machine gets to know the repository.
 */
export async function addRepository({ dir, url, signingKey }: PackageRepository): Promise<void> {
  for (const name of readdirSync(dir)) utimesSync(join(dir, name), PACKAGE_TIME, PACKAGE_TIME);
  const script = signingKey === undefined ? METADATA : `${METADATA}${SIGNATURES}`;
  await inDebian(await repositoryRootfs(), resolve(dir), script, {
    SOURCE_DATE_EPOCH: String(PACKAGE_TIME.getTime() / 1000),
    SIGNING_KEY: signingKey ?? "",
  });
  const publicKey = signingKey === undefined ? undefined : readFileSync(join(dir, KEY), "utf8");
  writeFileSync(join(dir, "unghost.sources"), aptSource(url, publicKey));
  writeFileSync(join(dir, "unghost.repo"), dnfSource(url, publicKey));
}

/** The file of the public key, beside the packages. */
const KEY = "unghost.asc";

/** A flat repository: packages, Packages and Release are in one directory. */
const METADATA = `cd /mnt
apt-ftparchive packages . > Packages
gzip -9nk Packages
apt-ftparchive -o APT::FTPArchive::Release::Origin=unghost -o APT::FTPArchive::Release::Label=unghost \\
  -o "APT::FTPArchive::Release::Architectures=amd64 arm64" release . > /tmp/Release
mv /tmp/Release Release
createrepo_c --quiet --no-database --general-compress-type=gz --revision="$SOURCE_DATE_EPOCH" --set-timestamp-to-revision .
`;

const SIGNATURES = `export GNUPGHOME=/tmp/gnupg
mkdir -m 700 "$GNUPGHOME"
printf '%s' "$SIGNING_KEY" | gpg --batch --quiet --import
gpg --batch --armor --export > ${KEY}
gpg --batch --quiet --clearsign --output InRelease Release
gpg --batch --quiet --armor --detach-sign --output repodata/repomd.xml.asc repodata/repomd.xml
`;

/** For /etc/apt/sources.list.d. The key is in it, which apt 2.3.10 (Debian 12, Ubuntu 22.04) and later read. */
function aptSource(url: string, publicKey: string | undefined): string {
  const trust = publicKey === undefined ? "Trusted: yes" : `Signed-By:\n${indented(publicKey)}`;
  return `Types: deb\nURIs: ${url}/\nSuites: ./\n${trust}\n`;
}

/** In a field of several lines a dot stands for an empty one. */
function indented(text: string): string {
  const lines = text.trimEnd().split("\n");
  return lines.map((line) => ` ${line || "."}`).join("\n");
}

/** For /etc/yum.repos.d. The signature of the metadata covers the packages by their sums. */
function dnfSource(url: string, publicKey: string | undefined): string {
  const trust = publicKey === undefined ? "repo_gpgcheck=0" : `repo_gpgcheck=1\ngpgkey=${url}/${KEY}`;
  return `[unghost]\nname=unghost\nbaseurl=${url}/\nenabled=1\ngpgcheck=0\n${trust}\n`;
}
