import { buildRouteMap, type Command, type RouteMap } from "@stricli/core";
import type { Context } from "./context.ts";

/** Loaded one by one: to build them all takes as long as it takes to run one. */
const commands: ReadonlyMap<string, () => Promise<Command<Context>>> = new Map([
  ["scan", async () => (await import("./scan.ts")).scan],
  ["heal", async () => (await import("./heal.ts")).heal],
  ["explain", async () => (await import("./explain.ts")).explain],
  ["boot", async () => (await import("./boot.ts")).boot],
  ["agent", async () => (await import("./agent.ts")).agent],
  ["keep", async () => (await import("./keep.ts")).keep],
  ["history", async () => (await import("./history.ts")).history],
  ["undo", async () => (await import("./undo.ts")).undo],
  ["quarantine", async () => (await import("./quarantine.ts")).quarantine],
  ["doctor", async () => (await import("./doctor.ts")).doctor],
  ["config", async () => (await import("./config.ts")).config],
  ["withdraw", async () => (await import("./withdraw.ts")).withdraw],
  ["install", async () => (await import("./install.ts")).install],
  ["uninstall", async () => (await import("./uninstall.ts")).uninstall],
  ["completion", async () => (await import("./completion.ts")).completion],
  ["version", async () => (await import("./version.ts")).version],
  ["help", async () => (await import("./help.ts")).help],
]);

export const COMMAND_NAMES: readonly string[] = [...commands.keys()];

export async function commandNamed(name: string): Promise<Command<Context> | undefined> {
  return await commands.get(name)?.();
}

/** What a command line may mean: the command that it begins with, or all of them for whoever looks around. */
export async function routesFor([first = ""]: readonly string[]): Promise<RouteMap<Context>> {
  const named = commands.get(first);
  const wanted = named === undefined ? [...commands] : [[first, named] as const];
  const built = await Promise.all(wanted.map(async ([name, load]) => [name, await load()] as const));
  return buildRouteMap<string, Context>({
    routes: Object.fromEntries(built),
    docs: { brief: "Finds and heals ghost pod sandboxes on Kubernetes nodes" },
  });
}
