import type { CommandResult } from "./command.ts";
import type { LabNode } from "./node.ts";
import { type WaitingPod, waitingPods } from "./waiting-pods.ts";

/** Wraps every command that is run in a node. */
export type CommandWatch = (
  node: LabNode,
  command: readonly string[],
  run: () => Promise<CommandResult>,
) => Promise<CommandResult>;

/** These limit the classes. */
const PARTIAL = new Set(["--only", "--skip"]);
const SCAN_MS = 120_000;

/**
 * Throws if unghost reports a node as healthy on which a pod waits for its sandbox longer than kubelet's timeout. A pod
 * counts if it waited before the command and still waits after it.
 */
export function watchVerdicts(program: string): CommandWatch {
  const healedAt = new WeakMap<LabNode, Date>();
  return async (node, command, run) => {
    const [file, verb = ""] = command;
    const answers = file === program && (verb === "scan" || verb === "heal");
    if (!answers || command.some((word) => PARTIAL.has(word.split("=")[0] ?? ""))) return await run();
    const before = await waitingPods(node);
    const result = await run();
    if (verb === "heal") healedAt.set(node, new Date());
    if (before.length === 0 || !isHealthy(result)) return result;
    const unseen = stillWaiting(before, await waitingPods(node), healedAt.get(node));
    if (unseen.length === 0) return result;
    const pods = unseen.map(({ pod, since }) => `${pod} (kubelet gave up at ${since.toISOString()})`).join(", ");
    throw new Error(`${command.slice(1).join(" ")} reports healthy while pods wait for their sandboxes: ${pods}`);
  };
}

/** The same check at any time, on a watched node. */
export async function expectWaitsSeen(node: LabNode, program: string): Promise<void> {
  if ((await waitingPods(node)).length === 0) return;
  await node.exec([program, "scan", "--timeout", "30s", "-o", "json"], { timeoutMs: SCAN_MS });
}

/**
 * With kubelet's earlier attempts gone, a heal leaves the next one to kubelet: earlier failures are no evidence about
 * it.
 */
function stillWaiting(
  before: readonly WaitingPod[],
  after: readonly WaitingPod[],
  healedAt: Date | undefined,
): readonly WaitingPod[] {
  const waited = new Set(before.map(({ uid }) => uid));
  return after.filter(
    ({ uid, hangs, since }) => waited.has(uid) && (hangs || healedAt === undefined || since > healedAt),
  );
}

function isHealthy({ code, stdout }: CommandResult): boolean {
  if (!stdout.startsWith("{")) return code === 0;
  return (JSON.parse(stdout) as { readonly verdict: string }).verdict === "healthy";
}
