import { copyFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { inDebian } from "../../lab/debian-chroot.ts";
import { debianRootfs } from "../../lab/systemd/rootfs.ts";
import { tempDir } from "../support/temp-dir.ts";

const COLLECTED = ["config", "doctor_-o_json", "history", "scan_-o_json", "scan_-v", "version_-o_json"];

test("sos loads the plugin, and its report has what unghost shows and the bundle", async () => {
  const shared = tempDir();
  onTestFinished(() => shared.remove());
  copyFileSync("dist/unghost", shared.join("unghost"));
  copyFileSync("deploy/sos/unghost.py", shared.join("unghost.py"));

  const listed = await inDebian(
    await debianRootfs("sos-rootfs", ["sosreport"]),
    shared.path,
    `cp /mnt/unghost /usr/bin/ && cp /mnt/unghost.py /usr/lib/python3/dist-packages/sos/report/plugins/
     mkdir /tmp/report && sos report --batch --only-plugins unghost --tmp-dir /tmp/report >&2
     cd /tmp/report && tar xzf sosreport-*.tar.gz && cd sosreport-*/sos_commands/unghost && ls
     tar tzf unghost-bundle.tar.gz`,
  );

  const files = listed.trim().split("\n");
  expect(files).toEqual(expect.arrayContaining(COLLECTED.map((name) => `unghost_${name}`)));
  expect(files.some((name) => name === "snapshot.json")).toBe(true);
});
