import { ensureContainerd2, ensureTools } from "../../lab/tools.ts";

/** Downloads happen once and before any test, so that no test's hang guard counts them. */
export async function setup(): Promise<void> {
  await ensureTools();
  await ensureContainerd2();
}
