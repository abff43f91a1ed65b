import { mkdirSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { judgeResult, parseResultName, readCniResults } from "../../src/node/cni-files.ts";
import { sandboxId } from "../../src/node/types/ids.ts";
import { asUnprivileged, fill, ID, isRoot, makePipe, makeSparse, OTHER_ID, tempDir, writeRawName } from "./temp-dir.ts";

const RESULT = { cniVersion: "1.0.0", ips: [{ address: "10.0.0.2/24" }] };

function cached(id: string, result: unknown = RESULT): string {
  return JSON.stringify({
    kind: "cniCacheV1",
    containerId: id,
    config: "e30=",
    ifName: "eth0",
    networkName: "n",
    result,
  });
}

function readResults(root: string, ...cacheDirs: readonly string[]) {
  return readCniResults({ root, cacheDirs: cacheDirs.length === 0 ? ["/cni"] : cacheDirs });
}

test.each([
  { result: RESULT, addresses: ["10.0.0.2/24"] },
  { result: { cniVersion: "1.0.0" }, addresses: undefined },
  { result: { cniVersion: "1.0.0", ips: [null, { address: 7 }, "x"] }, addresses: undefined },
])("reads the addresses $addresses from the result $result", ({ result, addresses }) => {
  const judged = judgeResult(cached(ID, result), { sandboxId: sandboxId(ID) });

  const expected = { health: "ok", hasConfig: true };
  expect(judged).toEqual(addresses === undefined ? expected : { ...expected, addresses });
});

test("a cached result without its configuration has nothing to call DEL with", () => {
  const bare = JSON.stringify({ kind: "cniCacheV1", containerId: ID, result: RESULT });

  expect(judgeResult(bare, { sandboxId: sandboxId(ID) })).toEqual({ health: "ok", addresses: ["10.0.0.2/24"] });
});

describe("parseResultName", () => {
  test.each([
    [`cbr0-${ID}-eth0`, "cbr0", "eth0"],
    [`my-net-with-dashes-${ID}-net1`, "my-net-with-dashes", "net1"],
    [`a.b_c-${ID}-eth-0.1`, "a.b_c", "eth-0.1"],
    [`${OTHER_ID}-${ID}-eth0`, OTHER_ID, "eth0"],
  ])("parses %s", (name, network, interfaceName) => {
    expect(parseResultName(name)).toEqual({ network, sandboxId: ID, interfaceName });
  });

  test.each([
    "",
    ID,
    `-${ID}-eth0`,
    `cbr0-${ID}-`,
    `cbr0-${ID}`,
    `cbr0-${ID.slice(1)}-eth0`,
    `cbr0-${ID}0-eth0`,
    `cbr0-${ID.toUpperCase()}-eth0`,
    `cbr0-${ID}-..`,
    `cbr0-${ID}-an-interface-name-too-long`,
    `cbr0-${ID}-eth 0`,
    `cbr0-${ID}-eth0\n`,
    `-rf-${ID}-eth0`,
    `cbr0\n-${ID}-eth0`,
  ])("refuses %j", (name) => {
    expect(parseResultName(name)).toBeUndefined();
  });

  test("parses every name that it can build", () => {
    const network = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,40}$/);
    const id = fc.stringMatching(/^[0-9a-f]{64}$/);
    const interfaceName = fc.stringMatching(/^[a-z0-9.-]{1,15}$/).filter((name) => !/^\.{1,2}$/.test(name));
    fc.assert(
      fc.property(network, id, interfaceName, (net, sandbox, iface) => {
        expect(parseResultName(`${net}-${sandbox}-${iface}`)).toEqual({
          network: net,
          sandboxId: sandbox,
          interfaceName: iface,
        });
      }),
    );
  });
});

describe("judgeResult", () => {
  const cutOff = cached(ID).slice(0, -20);
  test.each([
    ["a cache as libcni writes it", cached(ID), "ok"],
    ["a bare result of older libcni", JSON.stringify(RESULT), "ok"],
    ["a bare result without a version, which counts as 0.1.0", '{"ip4":{}}', "ok"],
    ["a truncated file", cutOff, "corrupt"],
    ["a file of NULs, as XFS leaves after a power cut", "\0".repeat(900), "corrupt"],
    ["JSON that is not an object", "[]", "corrupt"],
    ["null", "null", "corrupt"],
    ["white space", " \n", "corrupt"],
    ["a cache without result", cached(ID, null), "corrupt"],
    ["a result that is a list", cached(ID, []), "corrupt"],
    ["a version that is a number", cached(ID, { cniVersion: 1 }), "corrupt"],
    ["an invalid version", cached(ID, { cniVersion: "new" }), "corrupt"],
    ["the cache of a nerdctl container", cached(`default-${ID}`), "odd"],
  ])("%s", (_what, text, health) => {
    expect(judgeResult(text, { sandboxId: sandboxId(ID) }).health).toBe(health);
  });

  test("never throws", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => void judgeResult(text, { sandboxId: sandboxId(ID) })),
    );
  });
});

describe("readCniResults", () => {
  test("reads health, size and names of every result", async () => {
    const root = fill(tempDir(), {
      [`cni/results/cbr0-${ID}-eth0`]: cached(ID),
      [`cni/results/cni-loopback-${ID}-lo`]: "",
      [`cni/results/my-net-${OTHER_ID}-net1`]: '{"kind":"cniCa',
    });

    const source = await readResults(root);

    expect(source.status === "read" && source.value.toSorted((a, b) => a.path.localeCompare(b.path))).toMatchObject([
      { path: `/cni/results/cbr0-${ID}-eth0`, network: "cbr0", sandboxId: ID, interfaceName: "eth0", health: "ok" },
      { path: `/cni/results/cni-loopback-${ID}-lo`, health: "empty", size: 0 },
      { path: `/cni/results/my-net-${OTHER_ID}-net1`, sandboxId: OTHER_ID, interfaceName: "net1", health: "corrupt" },
    ]);
    expect(source).toMatchObject({ oddities: [] });
  });

  test("skips links, FIFOs, directories and unexpected names, each with its reason", async () => {
    const root = fill(tempDir(), { "cni/results/README": "x", [`cni/results/cbr0-${ID}-eth0`]: cached(ID) });
    const dir = `${root}/cni/results`;
    symlinkSync("/etc/passwd", `${dir}/link-${ID}-eth0`);
    makePipe(`${dir}/pipe-${ID}-eth0`);
    mkdirSync(`${dir}/dir-${ID}-eth0`);
    writeFileSync(`${dir}/line\nbreak`, "x");
    writeRawName(dir, [0xff, 0xfe]);

    const source = await readResults(root);

    expect(source).toMatchObject({ status: "read", value: [{ network: "cbr0" }] });
    expect(
      source.status === "read" && source.oddities.map(({ path }) => path.replace("/cni/results/", "")).sort(),
    ).toEqual([
      "README",
      "\\u{fffd}\\u{fffd}",
      `dir-${ID}-eth0`,
      "line\\x0abreak",
      `link-${ID}-eth0`,
      `pipe-${ID}-eth0`,
    ]);
  });

  test("a file that is too large is reported as odd, neither read nor corrupt", async () => {
    const root = fill(tempDir(), { "cni/results/.keep": "" });
    makeSparse(`${root}/cni/results/cbr0-${ID}-eth0`, 2 ** 31);

    const source = await readResults(root);

    expect(source).toMatchObject({ status: "read", value: [{ health: "odd", size: 2 ** 31 }] });
  });

  test("merges several caches; one may be missing, all missing is absent", async () => {
    const root = fill(tempDir(), { [`multus/results/n-${ID}-net1`]: cached(ID) });

    expect(await readResults(root, "/cni", "/multus")).toMatchObject({ status: "read", value: [{ network: "n" }] });
    expect(await readResults(root, "/cni")).toEqual({ status: "absent", reason: "there is no /cni/results" });
  });

  test("does not enter a directory that is a link", async () => {
    const root = fill(tempDir(), { [`elsewhere/n-${ID}-eth0`]: "" });
    mkdirSync(`${root}/cni`);
    symlinkSync("../elsewhere", `${root}/cni/results`);

    expect(await readResults(root)).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("symlink") },
    });
  });

  test.runIf(isRoot)("fails with a message and the next step without permission", async () => {
    const root = tempDir();
    mkdirSync(`${root}/cni/results`, { recursive: true, mode: 0o700 });

    const source = await asUnprivileged(() => readResults(root));

    expect(source).toMatchObject({ status: "failed", error: { next: "run unghost as root" } });
  });

  test("reads 20,000 files without blocking timers, stops on a signal, and ignores vanished files", async () => {
    const root = fill(tempDir(), { "cni/results/.keep": "" });
    const names = Array.from({ length: 20_000 }, (_, i) => `cbr0-${i.toString(16).padStart(64, "0")}-eth0`);
    for (const [i, name] of names.entries()) {
      writeFileSync(`${root}/cni/results/${name}`, cached(i.toString(16).padStart(64, "0")));
    }
    let turns = 0;
    const ticking = setInterval(() => {
      turns += 1;
      const victim = names.pop();
      if (victim !== undefined) unlinkSync(`${root}/cni/results/${victim}`);
    }, 1);

    const source = await readResults(root);
    clearInterval(ticking);

    expect(source.status === "read" && source.value.length).toBeGreaterThan(19_000);
    expect(source.status === "read" && source.value.every(({ health }) => health === "ok")).toBe(true);
    expect(turns).toBeGreaterThan(2);
    const aborted = await readCniResults({ root, cacheDirs: ["/cni"], signal: AbortSignal.abort() });
    expect(aborted).toMatchObject({ status: "failed", error: { message: expect.stringContaining("in time") } });
  });
});
