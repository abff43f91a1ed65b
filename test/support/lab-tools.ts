import { ensureContainerd, ensureMultus, ensureTools, findGo, whyNoRealNode } from "../../lab/tools.ts";

/** Downloads and builds happen once and before any test, so that no test's hang guard counts them. */
export async function setup(): Promise<void> {
  await ensureTools();
  await ensureContainerd();
  await ensureMultus();
}

/** Why not every end-to-end test can run on this machine; undefined if they all can. */
export function cannotRunHere(): string | undefined {
  if (findGo() === undefined) return "containerd 2 and multus are built with Go, and none was found";
  return whyNoRealNode();
}
