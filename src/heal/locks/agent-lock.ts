import { lstatSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describeError } from "../../host/system-error.ts";
import { type Outcome, refuse } from "../outcome.ts";
import { ownIdentity } from "./process-identity.ts";
import { acquireLock, type RunLock } from "./run-lock.ts";

/** Of the node, and not of a state directory: two agents with two of them would still heal the same sandboxes. */
const AGENT_DIR = "/run/unghost";

/** One agent a node, for as long as it lives. A refusal of the kind `lock` means that there is another one. */
export async function acquireAgentLock(hostRoot: string, uid: number): Promise<Outcome<RunLock>> {
  const dir = join(hostRoot, AGENT_DIR);
  const next = `Make ${dir} a directory that only unghost's user may write to.`;
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const stats = lstatSync(dir);
    if (!stats.isDirectory() || stats.uid !== uid || (stats.mode & 0o022) !== 0) {
      return refuse(`${dir} is not a directory that only user ${uid} may write to.`, next);
    }
  } catch (thrown) {
    return refuse(`${dir} cannot be used: ${describeError(thrown)}.`, next);
  }
  return await acquireLock(
    { path: join(dir, "agent.lock"), own: ownIdentity(), waitMs: 0, sleep },
    {
      busy: (holder, path) => `Another unghost agent runs on this node: ${holder} holds ${path}.`,
      next: "Stop that one first: two agents would heal the same sandboxes.",
    },
  );
}
