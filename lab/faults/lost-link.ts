import { createHash } from "node:crypto";
import { bridgeNetwork } from "../cni-config.ts";
import type { LabNode } from "../node.ts";
import { unknownId, writeOld } from "./host-local.ts";

/**
 * What a chain with the bandwidth plugin leaves when its DEL is lost: an address, the cached result, and a link of the node
 * that only the plugin deletes. Gives the link's name, which the plugin derives from network and sandbox.
 */
export async function lostLink(node: LabNode, address: string): Promise<string> {
  const owner = unknownId();
  const { name, cniVersion, plugins } = bridgeNetwork();
  const chain = { name, cniVersion, plugins: [...plugins, { type: "bandwidth" }] };
  const hash = createHash("sha512").update(`${name}${owner}`).digest("hex").slice(0, 12);
  const link = `bwp${hash}`;
  await node.check(["ip", "link", "add", link, "type", "veth", "peer", "name", `bwq${hash}`]);
  await writeOld(node, `/var/lib/cni/networks/${name}/${address}`, `${owner}\r\neth0`);
  const config = Buffer.from(JSON.stringify(chain)).toString("base64");
  const cached = { kind: "cniCacheV1", containerId: owner, config, ifName: "eth0", networkName: name };
  const result = { cniVersion, interfaces: [{ name: link }], dns: {} };
  await writeOld(node, `/var/lib/cni/results/${name}-${owner}-eth0`, JSON.stringify({ ...cached, result }));
  return link;
}
