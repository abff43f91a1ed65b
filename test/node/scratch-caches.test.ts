import { mkdirSync, symlinkSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readFlannelScratch } from "../../src/node/cni-facts.ts";
import { judgeMultusCache, MULTUS_MARKER, readMultusCache } from "../../src/node/cni-files.ts";
import { fill, ID, OTHER_ID, tempDir } from "./temp-dir.ts";

describe("multus cache", () => {
  test.each([
    ['[{"Conf":{"type":"flannel"}}]', "ok"],
    ["[]", "corrupt"],
    ["null", "corrupt"],
    ["[null]", "corrupt"],
    ["[1]", "corrupt"],
    ["{}", "corrupt"],
    ['[{"Conf":', "corrupt"],
    ["not JSON", "corrupt"],
  ])("%s is %s", (text, health) => {
    expect(judgeMultusCache(text).health).toBe(health);
  });

  test("a file-based delegate that is reduced for DEL lacks keys", () => {
    const asRead = { type: "kube-ovn", server_socket: "/run/x.sock", ipam: {} };
    const Bytes = Buffer.from(JSON.stringify(asRead)).toString("base64");
    const cached = (plugin: object) =>
      JSON.stringify([{ ConfList: { plugins: [plugin] }, CNINetworkConfigList: { Plugins: [{ Bytes }] } }]);

    expect(judgeMultusCache(cached({ type: "kube-ovn", ipam: {} }))).toEqual({
      health: "ok",
      strippedKeys: ["server_socket"],
    });
    expect(judgeMultusCache(cached(asRead))).toEqual({ health: "ok" });
  });

  test("unghost's own marker is valid", () => {
    expect(judgeMultusCache(MULTUS_MARKER)).toEqual({ health: "ok", isMarker: true });
  });

  test("never throws", () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void judgeMultusCache(text)));
  });

  test("files named by a full id are cache files, results/ is expected, others are odd", async () => {
    const root = fill(tempDir(), {
      [`cni/multus/${ID}`]: "",
      "cni/multus/notes.txt": "x",
      [`cni/multus/results/n-${ID}-eth0`]: "{}",
    });
    symlinkSync("/etc/passwd", `${root}/cni/multus/${OTHER_ID}`);

    const source = await readMultusCache({ root, dir: "/cni/multus" });

    expect(source).toMatchObject({
      status: "read",
      value: { dir: "/cni/multus", files: [{ sandboxId: ID, health: "empty", path: `/cni/multus/${ID}` }] },
    });
    expect(source.status === "read" && source.oddities.map(({ path }) => path).sort()).toEqual([
      `/cni/multus/${OTHER_ID}`,
      "/cni/multus/notes.txt",
    ]);
  });

  test("a node without multus has none", async () => {
    expect(await readMultusCache({ root: tempDir(), dir: "/cni/multus" })).toMatchObject({ status: "absent" });
  });
});

test("flannel's scratch files must contain an object", async () => {
  const root = fill(tempDir(), { [`flannel/${ID}`]: '{"type":"bridge"}', [`flannel/${OTHER_ID}`]: "[]" });
  mkdirSync(`${root}/flannel/sub`);

  const source = await readFlannelScratch({ root, dir: "/flannel" });

  const healths =
    source.status === "read" && Object.fromEntries(source.value.map((file) => [file.sandboxId, file.health]));
  expect(healths).toEqual({ [ID]: "ok", [OTHER_ID]: "corrupt" });
  expect(source).toMatchObject({ oddities: [{ path: "/flannel/sub" }] });
});
