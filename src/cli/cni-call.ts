import { handedOver, handleFailedDel } from "../guard/del-call.ts";
import { keepGuard } from "../guard/keep.ts";
import { replayQueue } from "../guard/replay.ts";

/** The one exit code that makes a failed DEL succeed: src/guard/launcher/decide.c has the same. */
const ABSORBED = 42;

/** How the launcher of the CNI guard (src/guard/launcher) starts unghost. Not for people. */
export async function runCniCall([
  what,
  stateDir = "",
  plugin = "",
  path = "",
  how = "",
]: readonly string[]): Promise<number> {
  if (what === "replay") {
    await replayQueue(stateDir, plugin === "" ? undefined : plugin);
    return 0;
  }
  if (what === "keep") {
    await keepGuard("/", stateDir);
    return 0;
  }
  if (what !== "del") return 64;
  const decision = await handleFailedDel(handedOver(stateDir, plugin, path, how));
  return decision.do === "pass-on" ? 0 : ABSORBED;
}
