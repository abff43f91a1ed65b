import type { LabNode } from "../node.ts";
import type { Injected } from "./injected.ts";

const LIMIT_FILE = "/proc/sys/fs/inotify/max_user_instances";

/**
 * Processes of root hold `limit` inotify instances more than none, and the node's limit is that number. The limit of
 * the machine stays as it is: a file with another number is mounted over its own in the node.
 */
export async function inotifyExhausted(node: LabNode, limit = 8): Promise<Injected> {
  await node.writeFile("/var/lab/max_user_instances", `${limit}\n`);
  await node.check(["mount", "--bind", "/var/lab/max_user_instances", LIMIT_FILE]);
  const watch = "setsid tail -f /var/lab/max_user_instances >/dev/null 2>&1 </dev/null &";
  await node.check(["sh", "-c", Array.from({ length: limit }, () => watch).join("\n")]);
  return { fault: "inotify-exhausted", did: `opened ${limit} inotify instances, which is the node's limit` };
}
