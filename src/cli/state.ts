import type { Actor } from "../heal/journal/entry.ts";
import type { SessionOptions } from "../heal/session.ts";
import { ownIdentity } from "../heal/state/run-lock.ts";
import { type NodeSettings, stateDirOf } from "./settings/read.ts";

/** How long to wait for another unghost that is changing this node. */
const LOCK_WAIT_MS = 30_000;

/** A session with the real clock, random numbers and identity. */
export function sessionOptions(
  settings: Pick<NodeSettings, "hostRoot" | "stateDir">,
  by: Actor = "cli",
): SessionOptions {
  return {
    stateDir: stateDirOf(settings),
    hostRoot: settings.hostRoot,
    uid: process.getuid?.() ?? 0,
    own: ownIdentity(),
    clock: () => new Date(),
    random: Math.random,
    lockWaitMs: LOCK_WAIT_MS,
    by,
  };
}
