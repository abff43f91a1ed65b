import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { pluginRoots, rootsInConfig } from "../../src/durable/kept-directories.ts";
import { scratchDir } from "./scratch-dir.ts";

describe("rootsInConfig", () => {
  test("finds data directories of plugins, IPAM and delegates", () => {
    const config = {
      name: "multus",
      plugins: [
        {
          type: "multus-shim",
          cniDir: "/data/multus",
          delegates: [
            { name: "cbr0", plugins: [{ type: "flannel", dataDir: "/data/flannel" }] },
            { type: "macvlan", ipam: { type: "host-local", dataDir: "/data/networks" } },
          ],
        },
      ],
    };

    expect(rootsInConfig(config)).toEqual([
      { path: "/data/multus", depth: 1 },
      { path: "/data/flannel", depth: 0 },
      { path: "/data/networks", depth: 1 },
    ]);
  });

  test.each([
    [null],
    ["text"],
    [{ type: "host-local", dataDir: 7 }],
    [{ type: "host-local", dataDir: "relative" }],
    [{ type: "toString", cniDir: "/x" }],
  ])("finds nothing in %j", (config) => {
    expect(rootsInConfig(config)).toEqual([]);
  });
});

describe("pluginRoots", () => {
  function hostWith(confDir: string, mode: number): string {
    const root = scratchDir();
    chmodSync(root, 0o755);
    mkdirSync(join(root, confDir), { recursive: true });
    const file = join(root, confDir, "10-net.conflist");
    writeFileSync(
      file,
      JSON.stringify({ plugins: [{ type: "bridge", ipam: { type: "host-local", dataDir: "/srv/ips" } }] }),
    );
    chmodSync(file, mode);
    return root;
  }

  function rootsOn(hostRoot: string, confDir?: string): readonly string[] {
    const roots = pluginRoots({ hostRoot, cniCacheDir: "/var/lib/cni", multusDir: undefined, confDir: () => confDir });
    return roots().map(({ path }) => path.slice(hostRoot.length));
  }

  /** Wherever the configurations point. */
  const ALWAYS = ["/var/lib/cni", "/var/lib/unghost/cni/attachments"];

  test("reads the configurations at the default paths, and at the runtime's", () => {
    expect(rootsOn(hostWith("etc/cni/net.d", 0o644))).toEqual([...ALWAYS, "/srv/ips"]);
    expect(rootsOn(hostWith("opt/my/net.d", 0o644))).toEqual(ALWAYS);
    expect(rootsOn(hostWith("opt/my/net.d", 0o644), "/opt/my/net.d")).toEqual([...ALWAYS, "/srv/ips"]);
  });

  test("ignores a configuration that other users can write", () => {
    expect(rootsOn(hostWith("etc/cni/net.d", 0o666))).toEqual(ALWAYS);
  });
});
