import { chmodSync, existsSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { releaseAddresses } from "../../../src/heal/steps/networks.ts";
import type { StepTools } from "../../../src/heal/steps/step-result.ts";
import { sandboxId } from "../../../src/node/types/ids.ts";
import { PodSandboxState, PodSandboxStatusResponse } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { writeWithParents } from "../../support/temp-dir.ts";
import { criSandbox, type FakeNode, fakeTools, journalOf } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

const LEFT = sandboxId("f".repeat(64));
const POD = "a".repeat(64);
const POD_ADDRESS = "10.88.0.2";
const READY = PodSandboxState.SANDBOX_READY;

let fixture: HealFixture;
let lease: { network: string; path: string; address: string; interfaceName: string };

beforeEach(async () => {
  fixture = await makeHealFixture();
  lease = { network: "cbr0", path: leaseOf("10.88.0.9"), address: "10.88.0.9", interfaceName: "eth0" };
  writeWithParents(lease.path, `${LEFT}\r\neth0`);
  writeWithParents(leaseOf(POD_ADDRESS), `${POD}\r\neth0`);
  install("host-local", `grep -l "^$CNI_CONTAINERID" ${dirname(lease.path)}/* | xargs -r rm`);
});

afterEach(() => fixture.remove());

test("host-local's DEL releases the addresses of the sandbox and no others", async () => {
  const { result, history } = await release([lease]);

  expect(result).toMatchObject({ kind: "done", detail: "by host-local's DEL" });
  expect([existsSync(lease.path), existsSync(leaseOf(POD_ADDRESS))]).toEqual([false, true]);
  expect(history).toMatchObject([
    { action: { kind: "release-address", address: "10.88.0.9", owner: LEFT }, outcome: "healed" },
  ]);
});

test("journals each address, even when one DEL released them all", async () => {
  const other = { ...lease, path: leaseOf("10.88.0.10"), address: "10.88.0.10" };
  writeWithParents(other.path, `${LEFT}\r\neth0`);

  const { result, history } = await release([lease, other]);

  expect([result.kind, existsSync(other.path)]).toEqual(["done", false]);
  expect(history).toMatchObject([
    { action: { address: "10.88.0.9" }, outcome: "healed", detail: expect.stringContaining("host-local") },
    { action: { address: "10.88.0.10" }, outcome: "healed" },
  ]);
  // No call was needed for it.
  expect(history[1]).not.toHaveProperty("detail", expect.anything());
});

test.each([
  ["10.88.0.9", "10.0.0.0/24"],
  ["fd00:10:88::9", "fd00::/64"],
])("calls host-local with a subnet of the address family of %s", async (address, subnet) => {
  const config = join(fixture.caches, "config");
  lease = { ...lease, address, path: leaseOf(address) };
  writeWithParents(lease.path, `${LEFT}\r\neth0`);
  install("host-local", `cat > ${config}; rm ${lease.path}`);

  expect((await release([lease])).result.kind).toBe("done");
  expect(JSON.parse(readFileSync(config, "utf8"))).toMatchObject({
    cniVersion: "1.0.0",
    name: "cbr0",
    ipam: { type: "host-local", subnet },
  });
});

test("calls the cached chain first, and reports its failure beside host-local's", async () => {
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

test.each([
  ["host-local alone released the address", "exit 1", "by host-local's DEL (DEL with the cached configuration: "],
  [
    "the chain failed after it had released the address",
    "rm LEASE; exit 1",
    "by DEL with the cached configuration, which then failed: operation",
  ],
])("reports what a failed DEL of the cached chain left behind: %s", async (_case, onDel, detail) => {
  const interfaces = [{ name: "lo" }, { name: "unghost-gone0" }, { name: "eth0", sandbox: "/run/netns/x" }];
  cacheResult([{ type: "bridge" }, { type: "portmap" }], { interfaces: [...interfaces, { name: "../.." }, {}] });
  install("portmap", "exit 0");
  install("bridge", `echo operation not permitted; ${onDel.replace("LEASE", lease.path)}`);

  const { result, history } = await release([lease]);

  expect(result).toMatchObject({
    kind: "done",
    effect: {
      code: "del-incomplete",
      text:
        "DEL of network cbr0 failed, so what its plugins (bridge, portmap) set up may remain: " +
        "operation not permitted. Still on the node: interface lo (ip link delete NAME).",
    },
  });
  expect(history).toMatchObject([{ outcome: "healed", detail: expect.stringContaining(detail) }]);
});

test("reports an incomplete DEL of the first address also where the second needed no call", async () => {
  const other = { ...lease, path: leaseOf("10.88.0.10"), address: "10.88.0.10" };
  writeWithParents(other.path, `${LEFT}\r\neth0`);
  cacheResult([{ type: "bridge" }]);
  install("bridge", "exit 1");

  expect((await release([lease, other])).result).toMatchObject({ kind: "done", effect: { code: "del-incomplete" } });
});

test("refuses before the first DEL when a running pod has one of the addresses", async () => {
  const other = { ...lease, path: leaseOf(POD_ADDRESS), address: POD_ADDRESS };
  writeWithParents(other.path, `${LEFT}\r\neth0`);

  const { result, history } = await release([lease, other]);

  expect(result).toMatchObject({
    kind: "refused",
    code: "address-in-use",
    reason: expect.stringContaining(POD_ADDRESS),
  });
  expect([existsSync(lease.path), existsSync(other.path), history]).toEqual([true, true, []]);
});

test.each<readonly [string, object, PodSandboxState, string]>([
  ["as a further address", { network: { ip: "", additionalIps: [{ ip: "10.88.0.9" }] } }, READY, "refused"],
  ["in a pod that does not run", { network: { ip: "10.88.0.9" } }, PodSandboxState.SANDBOX_NOTREADY, "done"],
  ["in no pod: one has no network", {}, READY, "done"],
])("releases it unless a running pod has it: %s", async (_, status, state, kind) => {
  install("host-local", `rm ${lease.path}`);
  const answer = PodSandboxStatusResponse.fromPartial({ status });

  const { result } = await release([lease], {
    sandboxes: [criSandbox(POD, { state })],
    cri: { podSandboxStatus: () => Promise.resolve(answer) },
  });

  expect(result.kind).toBe(kind);
});

test("a pod whose status has gone meanwhile has no address", async () => {
  install("host-local", `rm ${lease.path}`);
  const cri = { podSandboxStatus: () => Promise.resolve(PodSandboxStatusResponse.fromPartial({})) };

  expect((await release([lease], { cri })).result.kind).toBe("done");
});

test("refuses while the sandbox is referenced", async () => {
  const { result, history } = await release([lease], { processes: { byContainer: new Map([[LEFT, [7]]]) } });

  expect(result).toMatchObject({ kind: "refused", code: "still-referenced" });
  expect([existsSync(lease.path), history]).toEqual([true, []]);
});

test.each<readonly [string, () => void]>([
  ["another sandbox has the address now", () => writeWithParents(lease.path, `${POD}\r\neth0`)],
  ["the lease is empty now", () => writeWithParents(lease.path, "")],
  [
    "the lease is a link",
    () => {
      writeWithParents(`${lease.path}.real`, `${LEFT}\r\neth0`);
      rmSync(lease.path);
      symlinkSync(`${lease.path}.real`, lease.path);
    },
  ],
])("needs nothing when %s, whether or not the sandbox is referenced", async (_, change) => {
  change();

  const { result, history } = await release([lease], { processes: { byContainer: new Map([[LEFT, [7]]]) } });

  expect([result, existsSync(lease.path), history]).toEqual([{ kind: "unneeded" }, true, []]);
});

test("does not call host-local when the cached chain released the address", async () => {
  cacheResult([{ type: "bridge" }]);
  install("bridge", `rm ${lease.path}`);
  install("host-local", "echo not to be called; exit 1");

  expect((await release([lease])).result).toMatchObject({ kind: "done", detail: expect.stringContaining("cached") });
});

test("does not run a cached chain that other users may write", async () => {
  cacheResult([{ type: "bridge" }]);
  chmodSync(join(fixture.caches, "results"), 0o777);
  install("bridge", `rm ${lease.path}`);

  expect((await release([lease])).result).toMatchObject({ kind: "done", detail: "by host-local's DEL" });
});

test("does not run a cached chain behind a symbolic link", async () => {
  cacheResult([{ type: "bridge" }]);
  const path = `${fixture.caches}/results/cbr0-${LEFT}-eth0`;
  renameSync(path, `${path}.real`);
  symlinkSync(`${path}.real`, path);
  install("bridge", `rm ${lease.path}`);

  expect((await release([lease])).result).toMatchObject({ kind: "done", detail: "by host-local's DEL" });
});

test("searches the cached chain in each cache directory", async () => {
  cacheResult([{ type: "bridge" }]);
  install("bridge", `rm ${lease.path}`);
  const directories = {
    binDirs: [join(fixture.caches, "bin")],
    cniCacheDirs: [join(fixture.caches, "none"), fixture.caches],
  };

  expect((await release([lease], { tools: directories })).result).toMatchObject({
    kind: "done",
    detail: "by DEL with the cached configuration",
  });
});

test("fails when the address stays allocated, whatever the plugin answers", async () => {
  install("host-local", "exit 0");

  expect((await release([lease])).result).toMatchObject({
    kind: "failed",
    code: "address-not-released",
    reason: "10.88.0.9 could not be released: host-local reported success and kept the address",
  });
});

test("stops at the first address that cannot be released", async () => {
  const other = { ...lease, path: leaseOf("10.88.0.10"), address: "10.88.0.10" };
  writeWithParents(other.path, `${LEFT}\r\neth0`);
  install("host-local", "exit 1");

  const { result, history } = await release([lease, other]);

  expect([result.kind, history.length]).toEqual(["failed", 1]);
});

async function release(leases: readonly (typeof lease)[], node: FakeNode = {}) {
  const step = { kind: "release-addresses", sandboxId: LEFT, leases } as const;
  return await journalOf(fixture, releaseAddresses(step, FINDING, tools(node)));
}

/** A node on which one pod runs. */
function tools(node: FakeNode): StepTools {
  const status = PodSandboxStatusResponse.fromPartial({ status: { network: { ip: POD_ADDRESS } } });
  return fakeTools(fixture, {
    sandboxes: [criSandbox(POD, { state: READY })],
    cri: { podSandboxStatus: () => Promise.resolve(status) },
    tools: { binDirs: [join(fixture.caches, "bin")], cniCacheDirs: [fixture.caches] },
    ...node,
  });
}

function leaseOf(address: string): string {
  return `${fixture.caches}/networks/cbr0/${address}`;
}

function cacheResult(plugins: readonly object[], result: object = {}): void {
  const config = Buffer.from(JSON.stringify({ cniVersion: "1.0.0", name: "cbr0", plugins })).toString("base64");
  writeWithParents(
    `${fixture.caches}/results/cbr0-${LEFT}-eth0`,
    JSON.stringify({ kind: "cniCacheV1", config, result }),
  );
}

function install(type: string, onDel: string): void {
  const path = join(fixture.caches, "bin", type);
  writeWithParents(path, `#!/bin/sh\n${onDel}\n`);
  chmodSync(path, 0o755);
}
