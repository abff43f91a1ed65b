import { existsSync } from "node:fs";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { checkoutDir } from "../cache.ts";
import type { ClusterNode } from "./cluster-node.ts";

const IMPORT_MS = 300_000;

/** The name that the lab's charts are given: the chart refuses to be installed with its placeholder. */
export const LAB_IMAGE = "unghost.lab/unghost";

/** Imports the image into the node's runtime, like a pull, under the name that it was built with, and the lab's. Needs `make image`. */
export async function importUnghostImage({ lab }: ClusterNode): Promise<void> {
  const archive = join(checkoutDir() ?? ".", "dist/unghost-image.tar");
  if (!existsSync(archive)) throw new Error(`${archive} is not there: run \`make image\` first`);
  const images = ["ctr", "-n", "k8s.io", "images"];
  await lab.check([...images, "import", archive], { timeoutMs: IMPORT_MS });
  const names = (await lab.check([...images, "ls", "-q"])).split("\n");
  const built = names.find((name) => name.endsWith(`/unghost:${manifest.version}`) && !name.startsWith(LAB_IMAGE));
  if (built === undefined) throw new Error(`${archive} has no image unghost:${manifest.version}`);
  await lab.check([...images, "tag", "--force", built, `${LAB_IMAGE}:${manifest.version}`]);
}
