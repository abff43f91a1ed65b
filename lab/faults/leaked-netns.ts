import type { LabNode } from "../node.ts";
import type { Injected } from "./injected.ts";

/** A mounted network namespace without process or sandbox. Gone after a power cut, like everything under /run. */
export async function leakedNetns(node: LabNode): Promise<Injected> {
  const path = netnsPath();
  await node.check(["sh", "-c", `mkdir -p /run/netns && : >${path} && unshare --net=${path} true`]);
  return { fault: "leaked-netns", did: `left the network namespace ${path} without an owner`, path };
}

/** A regular file where a namespace should be mounted: the result of an interrupted creation or a lost mount. */
export async function leftoverNetnsFile(node: LabNode): Promise<Injected> {
  const path = netnsPath();
  await node.check(["sh", "-c", `mkdir -p /run/netns && : >${path}`]);
  return { fault: "leftover-netns-file", did: `left the plain file ${path}`, path };
}

function netnsPath(): string {
  return `/run/netns/cni-${crypto.randomUUID()}`;
}
