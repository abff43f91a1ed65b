import { chmodSync, mkdirSync, symlinkSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseNetworkConf, readCniConf } from "../../src/node/cni-conf.ts";
import { fill, makePipe, tempDir } from "./temp-dir.ts";

const FLANNEL = JSON.stringify({
  name: "cbr0",
  cniVersion: "1.0.0",
  plugins: [{ type: "flannel" }, { type: "portmap" }, { type: "bridge", ipam: { type: "host-local" } }],
});

function node(files: Readonly<Record<string, string>>, binaries: readonly string[] = []): string {
  const root = fill(
    tempDir(),
    Object.fromEntries(Object.entries(files).map(([name, text]) => [`etc/net.d/${name}`, text])),
  );
  mkdirSync(`${root}/bin`);
  for (const binary of binaries) {
    fill(root, { [`bin/${binary}`]: "x" });
    chmodSync(`${root}/bin/${binary}`, 0o755);
  }
  return root;
}

function readConf(root: string, onInvalid: "stop" | "skip" = "stop") {
  return readCniConf({ root, dir: "/etc/net.d", binDirs: ["/none", "/bin"], onInvalid });
}

describe("readCniConf", () => {
  test("uses the first file by name and searches every binary, including IPAM", async () => {
    const root = node({ "20-other.conf": "{}", "10-flannel.conflist": FLANNEL, "05-readme.txt": "x" }, [
      "flannel",
      "host-local",
      "loopback",
    ]);

    expect(await readConf(root)).toEqual({
      status: "read",
      oddities: [],
      value: {
        dir: "/etc/net.d",
        binDirs: ["/none", "/bin"],
        file: "/etc/net.d/10-flannel.conflist",
        network: "cbr0",
        plugins: [
          { type: "flannel", binaryFound: true },
          { type: "portmap", binaryFound: false },
          { type: "bridge", binaryFound: false },
          { type: "host-local", binaryFound: true },
        ],
      },
    });
  });

  test("a file that is not executable, a directory and a type with a slash are not binaries", async () => {
    const plugins = [{ type: "plain" }, { type: "dir" }, { type: "../etc/passwd" }];
    const root = node({ "10.conflist": JSON.stringify({ name: "n", plugins }) });
    fill(root, { "bin/plain": "x" });
    chmodSync(`${root}/bin/plain`, 0o644);
    mkdirSync(`${root}/bin/dir`);

    const source = await readConf(root);

    expect(source.status === "read" && source.value.plugins.map(({ binaryFound }) => binaryFound)).toEqual([
      false,
      false,
      false,
    ]);
  });

  test("follows links like the runtime: directory, file and binary, all inside the root", async () => {
    const root = fill(tempDir(), { "snap/conf/real": FLANNEL, "data/cni": "x" });
    chmodSync(`${root}/data/cni`, 0o755);
    mkdirSync(`${root}/etc`);
    mkdirSync(`${root}/bin`);
    symlinkSync("/snap/conf", `${root}/etc/net.d`);
    symlinkSync("/snap/conf/real", `${root}/snap/conf/10.conflist`);
    symlinkSync("/data/cni", `${root}/bin/flannel`);

    expect(await readConf(root)).toMatchObject({
      value: { file: "/etc/net.d/10.conflist", plugins: [{ type: "flannel", binaryFound: true }, {}, {}, {}] },
    });
  });

  test("returns multus' cache directory, and its delegates as plugins", async () => {
    const multus = {
      name: "multus-cni-network",
      type: "multus",
      cniDir: "/data/multus",
      binDir: "/delegates",
      delegates: [
        { name: "cbr0", plugins: [{ type: "flannel" }] },
        { type: "macvlan", ipam: { type: "dhcp" } },
      ],
    };
    const root = node({ "00-multus.conf": JSON.stringify(multus) }, ["multus"]);
    fill(root, { "delegates/flannel": "x" });
    chmodSync(`${root}/delegates/flannel`, 0o755);

    expect(await readConf(root)).toMatchObject({
      value: {
        file: "/etc/net.d/00-multus.conf",
        network: "multus-cni-network",
        plugins: [
          { type: "multus", binaryFound: true },
          { type: "flannel", binaryFound: true },
          { type: "macvlan", binaryFound: false },
          { type: "dhcp", binaryFound: false },
        ],
        multus: { confFile: "/etc/net.d/00-multus.conf", cniDir: "/data/multus", thick: false, binDir: "/delegates" },
      },
    });
  });

  test("thick multus without a configured directory uses the default one", async () => {
    const shim = { name: "m", type: "multus-shim" };
    const root = node({ "00-multus.conf": JSON.stringify(shim) });

    expect(await readConf(root)).toMatchObject({ value: { multus: { cniDir: "/var/lib/cni/multus", thick: true } } });
  });

  test.each([
    ["no directory", undefined, "there is no /etc/net.d"],
    ["no file", {}, "holds no network configuration"],
    ["only other files", { readme: "x" }, "holds no network configuration"],
  ])("%s: not initialised, with the reason", async (_what, files, message) => {
    const root = tempDir();
    if (files !== undefined) mkdirSync(`${root}/etc/net.d`, { recursive: true });
    fill(`${root}/etc/net.d`, files ?? {});

    const source = await readConf(root);

    expect(source).toMatchObject({ status: "absent", reason: expect.stringContaining(message) });
    expect(source).toMatchObject({ reason: expect.stringContaining("not initialized") });
  });

  test("containerd stops at an invalid first file, CRI-O continues with the next", async () => {
    const root = node({ "00-bad.conflist": "{", "10-good.conflist": FLANNEL });

    expect(await readConf(root, "stop")).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("00-bad.conflist"), next: expect.stringContaining("00-bad.conflist") },
    });
    expect(await readConf(root, "skip")).toMatchObject({
      status: "read",
      value: { file: "/etc/net.d/10-good.conflist" },
      oddities: [{ path: "/etc/net.d/00-bad.conflist" }],
    });
    expect(await readConf(node({ "00.conf": "" }), "skip")).toMatchObject({ status: "failed" });
  });

  test("does not block on a FIFO as the first file", async () => {
    const root = node({ "10.conflist": FLANNEL });
    makePipe(`${root}/etc/net.d/00.conf`);

    expect(await readConf(root)).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("pipe") },
    });
  });
});

describe("parseNetworkConf", () => {
  test.each([
    ["", true],
    ["[]", true],
    ["null", false],
    ['{"name":"n"}', true],
    ['{"name":"n","plugins":[]}', true],
    ['{"name":"n","plugins":[null]}', true],
    ['{"name":"n","plugins":[{}]}', true],
    ['{"plugins":[{"type":"x"}]}', true],
    ['{"name":"n"}', false],
  ])("%j (list: %s) is refused with a reason", (text, isList) => {
    expect(parseNetworkConf(text, isList)).toMatchObject({ problem: expect.any(String) });
  });

  test("never throws", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.json()),
        fc.boolean(),
        (text, isList) => void parseNetworkConf(text, isList),
      ),
    );
  });
});
