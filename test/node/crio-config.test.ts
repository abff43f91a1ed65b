import { chownSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readCrioCniDirs } from "../../src/node/crio-config.ts";
import { tempDir } from "../support/temp-dir.ts";

let dir: ReturnType<typeof tempDir>;
beforeEach(() => {
  dir = tempDir();
});
afterEach(() => dir.remove());

const CONFIG = "/etc/crio/crio.conf";

function dropIn(name: string, text: string): string {
  return dir.write(`/etc/crio/crio.conf.d/${name}`, `[crio.network]\n${text}\n`);
}

describe.skipIf(process.getuid?.() !== 0)("CRI-O's CNI directories (needs root)", () => {
  test("are unknown without a configuration, or when none names them", () => {
    expect(readCrioCniDirs(dir.path)).toEqual({});
    dir.write(CONFIG, '[crio.runtime]\ndefault_runtime = "crun"\n');
    expect(readCrioCniDirs(dir.path)).toEqual({});
  });

  test("are read from its file, over several lines and with a trailing slash", () => {
    dir.write(
      CONFIG,
      '[crio.network]\nnetwork_dir = "/etc/kubernetes/cni/net.d/"\nplugin_dirs = [\n  "/var/lib/cni/bin/",\n  "/usr/libexec/cni",\n]\n',
    );

    expect(readCrioCniDirs(dir.path)).toEqual({
      conf: "/etc/kubernetes/cni/net.d",
      bin: ["/var/lib/cni/bin", "/usr/libexec/cni"],
    });
  });

  test("are those of the last drop-in that sets them, each key independently", () => {
    dir.write(CONFIG, '[crio.network]\nnetwork_dir = "/a"\nplugin_dirs = ["/a/bin"]\n');
    dropIn("20-b.conf", 'plugin_dirs = ["/b/bin"]');
    dropIn("10-c.conf", 'network_dir = "/c"\nplugin_dirs = ["/c/bin"]');

    expect(readCrioCniDirs(dir.path)).toEqual({ conf: "/c", bin: ["/b/bin"] });
  });

  test("include the directory of the older plugin_dir", () => {
    dir.write(CONFIG, '[crio.network]\nplugin_dir = "/old/bin"\n');

    expect(readCrioCniDirs(dir.path)).toEqual({ bin: ["/old/bin"] });
  });

  test.each<readonly [string, () => void]>([
    ["belongs to another user", () => chownSync(dropIn("99-x.conf", 'plugin_dirs = ["/x"]'), 65534, 65534)],
    ["is not TOML", () => dropIn("99-x.conf", "plugin_dirs = [")],
    ["leads to a file of another user", () => linkTo("99-x.conf")],
  ])("are unknown when one of the files %s", (_what, spoil) => {
    dir.write(CONFIG, '[crio.network]\nplugin_dirs = ["/a/bin"]\n');
    dropIn("10-a.conf", "");
    spoil();

    expect(readCrioCniDirs(dir.path)).toEqual({});
  });
});

function linkTo(name: string): void {
  chownSync(dir.write("/srv/x.conf", '[crio.network]\nplugin_dirs = ["/x"]\n'), 65534, 65534);
  symlinkSync("/srv/x.conf", join(dir.path, "/etc/crio/crio.conf.d", name));
}
