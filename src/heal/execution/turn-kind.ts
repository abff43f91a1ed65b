import type { FreshFacts } from "./fresh-facts.ts";

/**
 * A pod in the host's network, or one whose network is down already, is removed without any plugin: that it works says
 * nothing about the network. The runtime has a cached result for every other.
 */
export type TurnKind = "calls-plugins" | "no-plugins";

export async function turnKindOf(sandboxId: string, facts: Pick<FreshFacts, "resultFiles">): Promise<TurnKind> {
  return (await facts.resultFiles(sandboxId)).length > 0 ? "calls-plugins" : "no-plugins";
}
