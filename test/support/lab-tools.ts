import { ensureContainerd2, ensureMultus, ensureTools } from "../../lab/tools.ts";

/** Downloads and builds happen once and before any test, so that no test's hang guard counts them. */
export async function setup(): Promise<void> {
  await ensureTools();
  await ensureContainerd2();
  await ensureMultus();
}
