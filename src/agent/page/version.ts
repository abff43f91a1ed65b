/** What to do about an agent that may not be the one that served this page. */
export type VersionAdvice = "same" | "reload" | "reload-did-not-help";

const RELOADED_FOR = "unghost-reloaded-for";

/** One reload brings the new agent's page; a cache in between that keeps the old one must not make it a loop. */
export function adviseVersion(
  pageVersion: string,
  agentVersion: string,
  memory: Pick<Storage, "getItem" | "setItem">,
): VersionAdvice {
  if (pageVersion === agentVersion) return "same";
  if (memory.getItem(RELOADED_FOR) === agentVersion) return "reload-did-not-help";
  memory.setItem(RELOADED_FOR, agentVersion);
  return "reload";
}
