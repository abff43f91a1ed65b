import { existsSync } from "node:fs";
import { join } from "node:path";
import { checkoutDir } from "../cache.ts";
import type { ClusterNode } from "./cluster-node.ts";

const IMPORT_MS = 300_000;

/** Imports the chart's image into the node's runtime, like a pull. Needs `make image`. */
export async function importUnghostImage({ lab }: ClusterNode): Promise<void> {
  const archive = join(checkoutDir() ?? ".", "dist/unghost-image.tar");
  if (!existsSync(archive)) throw new Error(`${archive} is not there: run \`make image\` first`);
  await lab.check(["ctr", "-n", "k8s.io", "images", "import", archive], { timeoutMs: IMPORT_MS });
}
