import type { LabNode } from "../node.ts";
import type { Injected } from "./injected.ts";

/** A mounted network namespace without process or sandbox. Gone with the next power cut, as everything under /run is. */
export async function leakedNetns(node: LabNode): Promise<Injected> {
  const path = netnsPath();
  await node.check(["sh", "-c", `mkdir -p /run/netns && : >${path} && unshare --net=${path} true`]);
  return { fault: "leaked-netns", did: `left the network namespace ${path} without an owner`, path };
}

/** A plain file where a namespace should be mounted: what an interrupted creation or a lost mount leaves. */
export async function leftoverNetnsFile(node: LabNode): Promise<Injected> {
  const path = netnsPath();
  await node.check(["sh", "-c", `mkdir -p /run/netns && : >${path}`]);
  return { fault: "leftover-netns-file", did: `left the plain file ${path}`, path };
}

function netnsPath(): string {
  return `/run/netns/cni-${crypto.randomUUID()}`;
}
