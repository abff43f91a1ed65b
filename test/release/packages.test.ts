import { readFileSync } from "node:fs";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runOrThrow } from "../../lab/command.ts";
import { inDebian } from "../../lab/debian-chroot.ts";
import { debianRootfs } from "../../lab/systemd/rootfs.ts";
import manifest from "../../package.json" with { type: "json" };
import { PACKAGE_UNITS } from "../../scripts/release/package-units.ts";
import { systemdNode } from "../systemd/systemd-node.ts";

const PACKAGES = "dist/packages";
const ARCH = process.arch === "arm64" ? { deb: "arm64", rpm: "aarch64" } : { deb: "amd64", rpm: "x86_64" };
const DEB = `unghost_${manifest.version}_${ARCH.deb}.deb`;
const RPM = `unghost-${manifest.version}-1.${ARCH.rpm}.rpm`;
const BUILD_MS = 600_000;
const UNITS = [...PACKAGE_UNITS.keys()];

/** Runs a script as root in a Debian with lintian and rpm. The packages are in /mnt. */
async function inLintian(script: string): Promise<string> {
  return inDebian(await debianRootfs("lintian-rootfs", ["lintian", "rpm", "man-db"]), resolve(PACKAGES), script);
}

test("two builds of the packages have the same bytes", async () => {
  const elsewhere = await mkdtemp(join(tmpdir(), "unghost-packages-"));
  onTestFinished(() => rm(elsewhere, { recursive: true }));

  await runOrThrow([process.execPath, "scripts/packages.ts", elsewhere], { timeoutMs: BUILD_MS });

  expect(readFileSync(join(elsewhere, "SHA256SUMS"), "utf8")).toBe(readFileSync(join(PACKAGES, "SHA256SUMS"), "utf8"));
});

test("lintian has neither errors nor warnings", async () => {
  expect(await inLintian(`lintian --allow-root --no-cfg --tag-display-limit 0 /mnt/${DEB} || true`)).toBe("");
});

test("man page and units of the package are valid", async () => {
  const printed = await inLintian(
    `dpkg -i /mnt/${DEB} >/dev/null; man --warnings /usr/share/man/man1/unghost.1.gz 2>&1 >/dev/null; man -P cat unghost | head -5`,
  );
  expect(printed).toMatch(/^UNGHOST\(1\)/);
  expect(printed).not.toMatch(/warning/i);
});

test("the packages contain the man page and completions, and bash completes with them", async () => {
  const shared = ["/usr/share/man/man1/unghost.1.gz", "/usr/share/bash-completion/completions/unghost"];
  const files = [...shared, "/usr/share/fish/vendor_completions.d/unghost.fish"];
  const inDeb = await inLintian(
    `dpkg -i /mnt/${DEB} >/dev/null; dpkg -L unghost
     bash -c '. /usr/share/bash-completion/completions/unghost
       COMP_WORDS=(unghost sca) COMP_CWORD=1 COMP_LINE="unghost sca" COMP_POINT=11
       $(complete -p unghost | sed "s/.*-F \\([^ ]*\\).*/\\1/") unghost sca unghost; echo completed: "\${COMPREPLY[*]}"'`,
  );
  const inRpm = await inLintian(`rpm -qlp /mnt/${RPM} 2>/dev/null`);

  expect(inDeb.split("\n")).toEqual(expect.arrayContaining([...files, "/usr/share/zsh/vendor-completions/_unghost"]));
  expect(inRpm.split("\n")).toEqual(expect.arrayContaining([...files, "/usr/share/zsh/site-functions/_unghost"]));
  expect(inDeb).toMatch(/^completed: scan ?$/m);
});

test("on a node with systemd the .deb installs disabled units, and purge leaves nothing", async () => {
  const node = await systemdNode();
  const before = await node.check(["sh", "-c", LISTING]);
  await copyFile(join(PACKAGES, DEB), node.livePath("/root/unghost.deb"));

  await node.check(["dpkg", "-i", "/root/unghost.deb"]);
  expect(await node.check(["/usr/bin/unghost", "version"])).toContain(`unghost ${manifest.version}`);
  for (const unit of UNITS) {
    expect([unit, await node.show(unit, "UnitFileState"), await node.show(unit, "ActiveState")]).toEqual([
      unit,
      "disabled",
      "inactive",
    ]);
  }
  await node.check(["systemd-analyze", "verify", ...UNITS.map((unit) => `/lib/systemd/system/${unit}`)]);

  await node.check(["systemctl", "enable", "--now", "unghost-agent.service"]);
  expect(await node.show("unghost-agent.service", "ActiveState")).toBe("active");
  await node.check(["dpkg", "--purge", "unghost"]);

  expect(await node.show("unghost-agent.service", "ActiveState")).toBe("inactive");
  await node.check(["rm", "/root/unghost.deb"]);
  expect(await node.check(["sh", "-c", LISTING])).toBe(before);
});

/** Every file that a package or unghost could leave. What containerd, kubelet and systemd write meanwhile is not listed. */
const LISTING =
  "find /usr /lib /etc /var/lib /run/unghost /var/cache /root -not -path '/var/lib/containerd*' -not -path '/var/lib/kubelet*' " +
  "-not -path '/usr/libexec/kubernetes*' -not -path '/var/lib/cni*' -not -path '/var/lib/dpkg/*' " +
  "-not -path '*/systemd/timers*' -not -path '/var/cache/*' 2>/dev/null | sort";

test("the .rpm installs, verifies and is erased without a trace", async () => {
  const printed = await inLintian(
    `rpm -i --nodeps /mnt/${RPM} 2>/dev/null
     unghost version
     rpm -V --nodeps unghost
     rpm -qp --qf '%{BUILDHOST}\\n' /mnt/${RPM}
     rpm -e unghost 2>/dev/null
     find / -xdev -name '*unghost*'`,
  );
  expect(printed.split("\n")).toEqual([
    expect.stringContaining(`unghost ${manifest.version} (commit `),
    "localhost",
    "",
  ]);
});
