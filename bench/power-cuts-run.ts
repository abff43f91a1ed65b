/**
 * `make power-cuts`: torn files and lost pods over seeded power cuts, without unghost, with the keeper, with the agent.
 * Arguments: number of cuts, seed, helpers and runtimes (comma-separated). Exits 1 if a limit is exceeded.
 */
import { resolve } from "node:path";
import type { RuntimeVersion } from "../lab/runtimes.ts";
import { benchPowerCuts, type Helper } from "./power-cuts.ts";
import { isMissed, render } from "./result.ts";

const [cuts = "30", seed = "1", helpers = "none,keep,agent", runtimes = "1.6,2.3"] = process.argv.slice(2);
const unghost = resolve(process.env["UNGHOST_BIN"] ?? "dist/unghost");

for (const runtime of runtimes.split(",") as RuntimeVersion[]) {
  for (const helper of helpers.split(",") as Helper[]) {
    const onCut = (result: object): boolean => process.stderr.write(`${JSON.stringify(result)}\n`);
    const result = await benchPowerCuts({ unghost, runtime, helper, cuts: Number(cuts), seed: Number(seed), onCut });
    process.stdout.write(render(result));
    if (result.bars.some(isMissed)) process.exitCode = 1;
  }
}
