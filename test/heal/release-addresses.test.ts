import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readHistory } from "../../src/heal/history.ts";
import { DEFAULT_WAITS, type NodeTools } from "../../src/heal/node-tools.ts";
import { releaseAddresses } from "../../src/heal/steps/release-addresses.ts";
import { sandboxId } from "../../src/snapshot/ids.ts";
import { read } from "../../src/snapshot/source.ts";
import { FINDING, makeWorkshop, type Workshop } from "./workshop.ts";

const LEFT = sandboxId("f".repeat(64));
const POD = "a".repeat(64);
const POD_ADDRESS = "10.88.0.2";

let shop: Workshop;
let lease: { network: string; path: string; address: string; interfaceName: string };

beforeEach(async () => {
  shop = await makeWorkshop();
  lease = { network: "cbr0", path: leaseOf("10.88.0.9"), address: "10.88.0.9", interfaceName: "eth0" };
  put(lease.path, `${LEFT}\r\neth0`);
  put(leaseOf(POD_ADDRESS), `${POD}\r\neth0`);
  install("host-local", `grep -l "^$CNI_CONTAINERID" ${dirname(lease.path)}/* | xargs -r rm`);
});

afterEach(() => shop.remove());

test("host-local's DEL releases the addresses of the sandbox and no others", async () => {
  const { result, history } = await release([lease]);

  expect(result).toMatchObject({ kind: "done", detail: "by host-local's DEL" });
  expect([existsSync(lease.path), existsSync(leaseOf(POD_ADDRESS))]).toEqual([false, true]);
  expect(history).toMatchObject([
    { action: { kind: "release-address", address: "10.88.0.9", owner: LEFT }, outcome: "healed" },
  ]);
});

test("the cached chain is called first, and its failure is reported beside host-local's", async () => {
  cacheResult([{ type: "bridge" }]);
  install("bridge", "echo delegate missing; exit 1");
  install("host-local", "echo lock held; exit 1");

  const { result } = await release([lease]);

  expect(result).toMatchObject({
    kind: "failed",
    reason: expect.stringMatching(/lock held \(DEL with the cached configuration: delegate missing\)/),
  });
  expect(existsSync(lease.path)).toBe(true);
});

test("refuses before the first DEL when one of the addresses is that of a running pod", async () => {
  const other = { ...lease, path: leaseOf(POD_ADDRESS), address: POD_ADDRESS };
  put(other.path, `${LEFT}\r\neth0`);

  const { result, history } = await release([lease, other]);

  expect(result).toMatchObject({ kind: "refused", reason: expect.stringContaining(POD_ADDRESS) });
  expect([existsSync(lease.path), existsSync(other.path), history]).toEqual([true, true, []]);
});

async function release(leases: readonly (typeof lease)[]) {
  const result = await releaseAddresses({ kind: "release-addresses", sandboxId: LEFT, leases }, FINDING, tools());
  await shop.journal.close();
  return { result, history: (await readHistory(shop.stateDir.journal)).records };
}

/** A node on which one pod runs. */
function tools(): NodeTools {
  const status = { network: { ip: POD_ADDRESS, additionalIps: [] } };
  const parts = {
    journal: shop.journal,
    hostRoot: "/",
    binDirs: [join(shop.caches, "bin")],
    cniCacheDirs: [shop.caches],
    waits: DEFAULT_WAITS,
    cri: {
      listPodSandbox: () => Promise.resolve([{ id: POD }]),
      podSandboxStatus: () => Promise.resolve({ status }),
    },
    facts: {
      sandbox: () => Promise.resolve(undefined),
      renew: () => undefined,
      containerd: () => Promise.resolve({ records: [], sandboxes: [] }),
      processes: () => Promise.resolve(read({ plugins: [], shims: [], byContainer: new Map() })),
    },
  } satisfies Partial<Record<keyof NodeTools, unknown>>;
  return parts as unknown as NodeTools;
}

function leaseOf(address: string): string {
  return `${shop.caches}/networks/cbr0/${address}`;
}

function put(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

function cacheResult(plugins: readonly object[]): void {
  const config = Buffer.from(JSON.stringify({ cniVersion: "1.0.0", name: "cbr0", plugins })).toString("base64");
  put(`${shop.caches}/results/cbr0-${LEFT}-eth0`, JSON.stringify({ kind: "cniCacheV1", config, result: {} }));
}

function install(type: string, onDel: string): void {
  const path = join(shop.caches, "bin", type);
  put(path, `#!/bin/sh\n${onDel}\n`);
  chmodSync(path, 0o755);
}
