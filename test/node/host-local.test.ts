import { symlinkSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseLease, readHostLocal } from "../../src/node/host-local.ts";
import { fill, ID, makePipe, makeSparse, tempDir } from "./temp-dir.ts";

describe("parseLease", () => {
  test.each([
    [`${ID}\r\neth0`, { id: ID, interfaceName: "eth0", separator: "\r\n" }],
    [`${ID}\r\neth0\r\n`, { id: ID, interfaceName: "eth0", separator: "\r\n" }],
    [ID, { id: ID, interfaceName: "", separator: "" }],
    [`${ID}\neth0`, { id: ID, interfaceName: "eth0", separator: "\n" }],
    ["", undefined],
    ["\0\0\0", undefined],
    ["two words", undefined],
    [`${ID}\r\neth0\r\nmore`, undefined],
  ])("%j", (text, owner) => {
    expect(parseLease(text)).toEqual(owner);
  });

  test("never throws", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => void parseLease(text)));
  });
});

describe("readHostLocal", () => {
  test("lists leases by network, including IPv6; locks and last addresses are not leases", async () => {
    const root = fill(tempDir(), {
      "nets/cbr0/10.0.0.2": `${ID}\r\neth0`,
      "nets/cbr0/fd00::7": `${ID}\r\neth0`,
      "nets/cbr0/10.0.0.3": "",
      "nets/cbr0/last_reserved_ip.0": "10.0.0.3",
      "nets/cbr0/lock": "",
      "nets/empty/lock": "",
    });

    const source = await readHostLocal({ root, dir: "/nets" });

    expect(source).toMatchObject({ status: "read", oddities: [] });
    const networks = source.status === "read" ? source.value : [];
    expect(networks.map(({ network }) => network).sort()).toEqual(["cbr0", "empty"]);
    const leases = networks.flatMap((network) => network.leases).toSorted((a, b) => a.address.localeCompare(b.address));
    expect(leases).toMatchObject([
      { path: "/nets/cbr0/10.0.0.2", address: "10.0.0.2", owner: { id: ID, interfaceName: "eth0" } },
      { address: "10.0.0.3", size: 0 },
      { address: "fd00::7", owner: { id: ID } },
    ]);
    expect(leases[1]).not.toHaveProperty("owner");
  });

  test("reports and skips every other file", async () => {
    const root = fill(tempDir(), { "nets/cbr0/10.0.0.300": "x", "nets/file": "x", "nets/bad name/10.0.0.2": "x" });
    symlinkSync("/etc/passwd", `${root}/nets/cbr0/10.0.0.4`);
    makePipe(`${root}/nets/cbr0/10.0.0.5`);
    makeSparse(`${root}/nets/cbr0/10.0.0.6`, 2 ** 31);
    symlinkSync("/etc", `${root}/nets/linked`);

    const source = await readHostLocal({ root, dir: "/nets" });

    expect(source).toMatchObject({ status: "read", value: [{ network: "cbr0", leases: [] }] });
    expect(source.status === "read" && source.oddities.map(({ path }) => path).sort()).toEqual([
      "/nets/bad name",
      "/nets/cbr0/10.0.0.300",
      "/nets/cbr0/10.0.0.4",
      "/nets/cbr0/10.0.0.5",
      "/nets/cbr0/10.0.0.6",
      "/nets/file",
      "/nets/linked",
    ]);
  });

  test("a lease with a bare line feed keeps its owner, and is reported because host-local cannot free it", async () => {
    const root = fill(tempDir(), { "nets/cbr0/10.0.0.2": `${ID}\neth0` });

    expect(await readHostLocal({ root, dir: "/nets" })).toMatchObject({
      value: [{ leases: [{ owner: { id: ID } }] }],
      oddities: [{ path: "/nets/cbr0/10.0.0.2", reason: expect.stringContaining("CR LF") }],
    });
  });

  test("a missing directory is absent; too many entries and a timeout are failures", async () => {
    const root = fill(tempDir(), { "nets/cbr0/10.0.0.2": ID, "nets/cbr0/10.0.0.3": ID });

    expect(await readHostLocal({ root, dir: "/none" })).toMatchObject({ status: "absent" });
    expect(await readHostLocal({ root, dir: "/nets", maxEntries: 1 })).toMatchObject({ status: "failed" });
    expect(await readHostLocal({ root, dir: "/nets", signal: AbortSignal.abort() })).toMatchObject({
      status: "failed",
    });
  });
});
