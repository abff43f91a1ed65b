import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { collectable, collectGarbage } from "../../src/heal/cni-gc.ts";
import { readHistory } from "../../src/heal/history.ts";
import { DEFAULT_WAITS, type NodeTools } from "../../src/heal/node-tools.ts";
import { releaseAddresses } from "../../src/heal/steps/release-addresses.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { sandboxId } from "../../src/snapshot/ids.ts";
import { parseJson, property } from "../../src/snapshot/json.ts";
import { failed, read } from "../../src/snapshot/source.ts";
import { FINDING, makeWorkshop, type Workshop } from "./workshop.ts";

const LEFT = sandboxId("f".repeat(64));
const POD = "a".repeat(64);
const POD_ADDRESS = "10.88.0.2";
const BUSY = { plugins: [{ cniCommand: "ADD", pid: 7 }], shims: [], byContainer: new Map() };
const QUIET = { ...BUSY, plugins: [] };

let shop: Workshop;
let lease: { network: string; path: string; address: string; interfaceName: string };

beforeEach(async () => {
  shop = await makeWorkshop();
  lease = { network: "cbr0", path: leaseOf("10.88.0.9"), address: "10.88.0.9", interfaceName: "eth0" };
  put(lease.path, `${LEFT}\r\neth0`);
  put(leaseOf(POD_ADDRESS), `${POD}\r\neth0`);
  put(`${shop.caches}/results/cbr0-${POD}-net1`, "");
  configure({});
  install("bridge", { versions: ["1.0.0", "1.1.0"], gc: `rm ${lease.path}` });
  install("host-local", { versions: ["1.0.0"], gc: "" });
});

afterEach(() => shop.remove());

function leaseOf(address: string): string {
  return `${shop.caches}/networks/cbr0/${address}`;
}

function put(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

function configure(list: object): void {
  const plugins = [{ type: "bridge" }];
  put(join(shop.caches, "10.conflist"), JSON.stringify({ cniVersion: "1.1.0", name: "cbr0", plugins, ...list }));
}

/** A plugin that writes down how it was called for GC, then does as it is told. */
function install(type: string, { versions, gc }: { versions: readonly string[]; gc: string }): void {
  const path = join(shop.caches, "bin", type);
  put(
    path,
    `#!/bin/sh
case "$CNI_COMMAND" in
VERSION) echo '${JSON.stringify({ cniVersion: "1.1.0", supportedVersions: versions })}' ;;
GC) env | grep ^CNI_ | sort >${path}.env; cat >${path}.conf; ${gc} ;;
*) exit 1 ;;
esac
`,
  );
  chmodSync(path, 0o755);
}

function calledWith(type: string, what: "env" | "conf"): string | undefined {
  const path = join(shop.caches, "bin", `${type}.${what}`);
  return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
}

/** A node on which one pod runs. */
function tools(changed: { processes?: unknown; containerd?: unknown; listPodSandbox?: unknown } = {}): NodeTools {
  const status = { network: { ip: POD_ADDRESS, additionalIps: [] } };
  const parts = {
    journal: shop.journal,
    hostRoot: "/",
    conf: { network: "cbr0", file: join(shop.caches, "10.conflist") },
    binDirs: [join(shop.caches, "bin")],
    cniCacheDirs: [shop.caches],
    waits: DEFAULT_WAITS,
    cri: {
      listPodSandbox: changed.listPodSandbox ?? (() => Promise.resolve([{ id: POD }])),
      podSandboxStatus: () => Promise.resolve({ status }),
    },
    facts: {
      sandbox: () => Promise.resolve(undefined),
      renew: () => undefined,
      containerd: () =>
        Promise.resolve("containerd" in changed ? changed.containerd : { records: [{ id: "record" }], sandboxes: [] }),
      processes: () => Promise.resolve(changed.processes ?? read(QUIET)),
    },
  } satisfies Partial<Record<keyof NodeTools, unknown>>;
  return parts as unknown as NodeTools;
}

describe("a network whose garbage may be collected", () => {
  const plugins = [{ type: "bridge", ipam: { type: "host-local" } }];
  const place = { network: "cbr0", path: "/var/lib/cni/networks/cbr0/10.88.0.9" };

  test.each<readonly [string, object, string | undefined]>([
    ["speaks CNI 1.1", { cniVersion: "1.1.0" }, "1.1.0"],
    ["speaks a later version", { cniVersion: "1.10.0" }, "1.10.0"],
    ["speaks 1.1 among others", { cniVersion: "1.0.0", cniVersions: ["1.1.0", "0.4.0"] }, "1.1.0"],
    ["does not forbid it", { cniVersion: "1.1.0", disableGC: false }, "1.1.0"],
    ["keeps addresses where they were read", withDataDir("/var/lib/cni/networks"), "1.1.0"],
    ["is not one of CNI 1.0", { cniVersion: "1.0.0" }, undefined],
    ["is not one without a version", {}, undefined],
    ["is not one that forbids it", { cniVersion: "1.1.0", disableGC: true }, undefined],
    ["is not one that forbids it in a string", { cniVersion: "1.1.0", disableGC: "true" }, undefined],
    ["is not one of another name", { cniVersion: "1.1.0", name: "other" }, undefined],
    ["is not one without plugins", { cniVersion: "1.1.0", plugins: [] }, undefined],
    ["does not keep addresses elsewhere", withDataDir("/run/addresses"), undefined],
  ])("%s", (_what, list, expected) => {
    const network = collectable(JSON.stringify({ name: "cbr0", plugins, ...list }), place);
    expect(network.status === "read" ? network.value.cniVersion : undefined).toBe(expected);
  });

  function withDataDir(dataDir: string): object {
    return { cniVersion: "1.1.0", plugins: [{ type: "bridge", ipam: { type: "host-local", dataDir } }] };
  }
});

describe("GC", () => {
  test("tells a plugin all that must stay, and of no container", async () => {
    configure({ plugins: [{ type: "bridge", mtu: 1400 }] });

    expect(await collectGarbage(LEFT, lease, tools())).toBeUndefined();

    expect(calledWith("bridge", "env")).toBe(`CNI_COMMAND=GC\nCNI_PATH=${join(shop.caches, "bin")}`);
    const conf = parseJson(calledWith("bridge", "conf") ?? "");
    expect(conf).toMatchObject({ name: "cbr0", cniVersion: "1.1.0", type: "bridge", mtu: 1400 });
    const valid = [
      { containerID: POD, ifname: "eth0" },
      { containerID: POD, ifname: "net1" },
      { containerID: "record", ifname: "eth0" },
    ];
    expect(property(conf, "cni.dev/valid-attachments")).toEqual(valid);
    expect(property(conf, "cni.dev/attachments")).toEqual(valid);
  });

  test("asks only plugins that speak it, and the others though one fails", async () => {
    configure({ plugins: [{ type: "old" }, { type: "broken" }, { type: "absent" }, { type: "bridge" }] });
    install("old", { versions: ["1.0.0"], gc: "" });
    install("broken", { versions: ["1.1.0"], gc: "echo out of order; exit 1" });

    expect(await collectGarbage(LEFT, lease, tools())).toBe("broken: out of order");

    expect(["old", "broken", "bridge"].map((type) => calledWith(type, "env") !== undefined)).toEqual([
      false,
      true,
      true,
    ]);
  });

  test.each<readonly [string, () => NodeTools, string]>([
    ["the runtime's list", () => tools({ listPodSandbox: () => Promise.reject(overflow()) }), "larger than max"],
    ["the runtime's records", () => tools({ containerd: undefined }), "only containerd's records"],
    ["the process table", () => tools({ processes: failed("no /proc") }), "no /proc"],
    ["one process", () => tools({ processes: read(QUIET, [{ path: "/proc/7", reason: "locked" }]) }), "/proc/7"],
    ["a result cache", () => spoilt(() => put(`${shop.caches}/multus/results`, "")), "a directory belongs"],
    ["a lease", () => spoilt(() => put(leaseOf("10.88.0.3"), "")), "names no owner"],
    ["the leases", () => spoilt(() => rmSync(`${shop.caches}/networks`, { recursive: true })), "there is no"],
  ])("asks nobody where %s cannot be read", async (_what, node, reason) => {
    expect(await collectGarbage(LEFT, lease, node())).toContain(reason);
    expect(calledWith("bridge", "env")).toBeUndefined();
  });

  function overflow(): RuntimeError {
    return new RuntimeError("overflow", "ListPodSandbox", "larger than max", "");
  }

  function spoilt(spoil: () => void): NodeTools {
    spoil();
    return { ...tools(), cniCacheDirs: [shop.caches, join(shop.caches, "multus")] };
  }

  test.each<readonly [string, () => NodeTools, string]>([
    ["while kubelet runs", () => tools({ processes: read({ ...QUIET, kubelet: { pid: 8 } }) }), "kubelet (pid 8)"],
    ["while a plugin is at work", () => tools({ processes: read(BUSY) }), "ADD, pid 7"],
    [
      "about a sandbox that is known",
      () => tools({ listPodSandbox: () => Promise.resolve([{ id: LEFT }]) }),
      "after all",
    ],
    ["about a network that is not in use", () => ({ ...tools(), conf: undefined }), "not the network"],
  ])("asks nobody %s", async (_what, node, reason) => {
    expect(await collectGarbage(LEFT, lease, node())).toContain(reason);
    expect(calledWith("bridge", "env")).toBeUndefined();
  });
});

describe("releasing addresses by GC", () => {
  async function release(node = tools(), leases = [lease]) {
    const result = await releaseAddresses({ kind: "release-addresses", sandboxId: LEFT, leases }, FINDING, node);
    await shop.journal.close();
    return { result, history: (await readHistory(shop.stateDir.journal)).records };
  }

  test("frees the address and is in the journal", async () => {
    const { result, history } = await release();

    expect(result.kind).toBe("done");
    expect([existsSync(lease.path), existsSync(leaseOf(POD_ADDRESS))]).toEqual([false, true]);
    expect(history).toMatchObject([
      { action: { kind: "release-address", address: "10.88.0.9", owner: LEFT }, outcome: "healed" },
    ]);
  });

  test("says what it left untried where host-local fails, too", async () => {
    const { result } = await release(tools({ processes: read(BUSY) }));

    expect(result).toMatchObject({
      kind: "failed",
      reason: expect.stringMatching(/host-local ended with code 1 \(GC: .*a network plugin is at work/),
    });
    expect(existsSync(lease.path)).toBe(true);
  });

  test("fails where a plugin frees the address of a pod that runs", async () => {
    install("bridge", { versions: ["1.1.0"], gc: `rm ${dirname(lease.path)}/10.*` });

    const { result } = await release();

    expect(result).toMatchObject({ kind: "failed", reason: expect.stringContaining(`freed ${POD_ADDRESS}`) });
  });

  test("does not begin where the sandbox also holds the address of a pod that runs", async () => {
    const other = { ...lease, path: leaseOf(POD_ADDRESS), address: POD_ADDRESS };
    put(other.path, `${LEFT}\r\neth0`);

    const { result, history } = await release(tools(), [lease, other]);

    expect(result).toMatchObject({ kind: "refused", reason: expect.stringContaining(POD_ADDRESS) });
    expect([existsSync(lease.path), existsSync(other.path), history]).toEqual([true, true, []]);
  });
});
