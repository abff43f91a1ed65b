import { chownSync } from "node:fs";
import { expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import { readAddressStores, readHostLocalDirs } from "../../src/node/address-stores.ts";
import { PATIENT, snapshotOf, THICK_MULTUS } from "../support/snapshot-builder.ts";
import { fill, ID, tempDir } from "./temp-dir.ts";

const CONF = "/etc/cni/net.d";
const LEASE = `${ID}\r\neth0`;
const file = (name: string) => `${CONF.slice(1)}/${name}`;

function nodeWith(dataDir: string): string {
  return fill(tempDir(), {
    [file("00-multus.conf")]: JSON.stringify({ type: "multus-shim", clusterNetwork: "ovn" }),
    [file("10-ovn.conflist")]: JSON.stringify({ name: "ovn", plugins: [{ type: "kube-ovn" }, { type: "portmap" }] }),
    [file("20-lan.conf")]: JSON.stringify({ type: "bridge", ipam: { type: "host-local", dataDir } }),
    [file("30-torn.conf")]: "{",
    "var/lib/cni/networks/cbr0/10.88.0.2": LEASE,
    "opt/leases/lan/10.99.0.2": LEASE,
  });
}

async function networksOf(root: string): Promise<{ readonly dirs: readonly string[]; readonly oddities: number }> {
  const { dataDirs } = readAddressStores(root, CONF);
  const where = { root, signal: AbortSignal.timeout(10_000) };
  const source = await readHostLocalDirs(where, "/var/lib/cni/networks", dataDirs);
  if (source.status !== "read") throw new Error(JSON.stringify(source));
  return { dirs: source.value.map(({ dir }) => dir), oddities: source.oddities.length };
}

test("leases are read wherever a delegate's configuration keeps them", async () => {
  expect(await networksOf(nodeWith("/opt/leases/"))).toEqual({
    dirs: ["/var/lib/cni/networks/cbr0", "/opt/leases/lan"],
    oddities: 0,
  });
  expect(await networksOf(nodeWith("/var/lib/cni/networks"))).toMatchObject({ dirs: ["/var/lib/cni/networks/cbr0"] });
});

test("a directory that another user owns is not read, which is reported", async () => {
  const root = nodeWith("/opt/leases");
  chownSync(`${root}/opt/leases`, 1000, 1000);

  expect(await networksOf(root)).toEqual({ dirs: ["/var/lib/cni/networks/cbr0"], oddities: 1 });
});

test("a scan says what it does not know of a delegate whose addresses are not on the node", () => {
  const { plugins: addressPlugins } = readAddressStores(nodeWith("/opt/leases"), CONF);
  const snapshot = snapshotOf({ conf: THICK_MULTUS });
  const notKnown = (cni: Partial<typeof snapshot.cni>) =>
    diagnose({ ...snapshot, cni: { ...snapshot.cni, ...cni } }, PATIENT).notKnown;

  expect(addressPlugins.toSorted()).toEqual(["bridge", "host-local", "kube-ovn", "multus-shim", "portmap"]);
  expect(notKnown({ addressPlugins })).toEqual([
    expect.stringMatching(/^whether kube-ovn still holds .*ips\.kubeovn\.io/),
  ]);
  expect(notKnown({ addressPlugins, conf: snapshotOf().cni.conf })).toEqual([]);
  expect(notKnown({ addressPlugins: ["multus-shim", "bridge", "host-local"] })).toEqual([]);
});

test("whereabouts is known by its directory: the networks that use it are in the API", () => {
  const root = fill(tempDir(), {
    [file("00-multus.conf")]: JSON.stringify({ type: "multus-shim", clusterNetwork: "cbr0" }),
    [file("whereabouts.d/whereabouts.conf")]: "{}",
  });
  const { plugins: addressPlugins } = readAddressStores(root, CONF);
  const snapshot = snapshotOf({ conf: THICK_MULTUS });

  expect(diagnose({ ...snapshot, cni: { ...snapshot.cni, addressPlugins } }, PATIENT).notKnown).toEqual([
    expect.stringMatching(/^whether whereabouts still holds .*ippools\.whereabouts/),
  ]);
});
