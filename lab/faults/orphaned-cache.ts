import { sandboxId } from "../../src/node/types/ids.ts";
import { bridgeNetwork } from "../cni-config.ts";
import type { LabNode } from "../node.ts";
import { unknownId, writeOld } from "./host-local.ts";
import type { Injected } from "./injected.ts";

export type CacheKind = "results" | "multus" | "flannel";

/** An intact cache file of a sandbox that the runtime does not have: it is never read again. */
export async function orphanedCache(node: LabNode, kind: CacheKind = "results"): Promise<Injected> {
  const id = unknownId();
  const network = bridgeNetwork();
  const path = kind === "results" ? `/var/lib/cni/results/${network.name}-${id}-eth0` : `/var/lib/cni/${kind}/${id}`;
  const content = {
    results: {
      kind: "cniCacheV1",
      containerId: id,
      config: Buffer.from(JSON.stringify(network)).toString("base64"),
      ifName: "eth0",
      networkName: network.name,
      result: { cniVersion: network.cniVersion, dns: {} },
    },
    multus: [{ Conf: { type: "bridge" }, Bytes: "" }],
    flannel: network.plugins[0],
  }[kind];
  await writeOld(node, path, JSON.stringify(content));
  return {
    fault: "orphaned-cache",
    did: `left ${path} of a sandbox that does not exist`,
    sandboxId: sandboxId(id),
    path,
  };
}
