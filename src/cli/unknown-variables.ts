import { didYouMean } from "./config/suggest.ts";
import { SETTING_KEYS } from "./node-settings.ts";
import { environmentName } from "./settings.ts";

/** Of the lab and the tests; nothing of unghost itself reads them. */
const OTHERS = /^UNGHOST_(?:LAB_|BIN$|BENCH_|TEST_)/;

/** A variable that nothing reads is most likely a misspelt setting: one sentence each. */
export async function unknownVariables(env: Readonly<Record<string, string | undefined>>): Promise<readonly string[]> {
  const shared = ["UNGHOST_CONFIG", ...SETTING_KEYS.map(environmentName)];
  const unread = Object.keys(env).filter(
    (name) => name.startsWith("UNGHOST_") && !OTHERS.test(name) && !shared.includes(name),
  );
  if (unread.length === 0) return [];
  // Few have the agent's variables set, and its table takes time to load.
  const { AGENT_FLAG_KEYS } = await import("./config/agent-settings.ts");
  const known = [...shared, ...AGENT_FLAG_KEYS.map(environmentName)];
  return unread
    .filter((name) => !known.includes(name))
    .map((name) => `${name} is not a setting${didYouMean(name, known)}`);
}
