import { handedOver, handleFailedDel } from "../guard/del-call.ts";
import { GUARD_STATE_DIRECTORIES } from "../guard/home.ts";
import { keepGuard } from "../guard/keep.ts";
import { replayQueue } from "../guard/replay.ts";
import { distrustOf } from "../guard/state-files.ts";

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
  const distrust = distrustOf(stateDir, GUARD_STATE_DIRECTORIES);
  if (distrust !== undefined) {
    process.stderr.write(`unghost CNI guard: its state is not used: ${distrust}\n`);
    return 1;
  }
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
