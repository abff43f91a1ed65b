/** `make bench`: the cost of unghost, compared with crictl where possible. Exits 1 if a limit is exceeded. */
import { resolve } from "node:path";
import { benchAgent } from "./agent-idle.ts";
import { benchCrowdedNode } from "./crowded.ts";
import { benchExplain } from "./explain.ts";
import { benchHeal } from "./heal.ts";
import { benchKeeperCost } from "./keeper-cost.ts";
import { benchPowerCuts, type Helper } from "./power-cuts.ts";
import { isMissed, type Result, render } from "./result.ts";
import { benchEmptyNode, benchHalfDeadNode } from "./scan.ts";

const unghost = resolve(process.env["UNGHOST_BIN"] ?? "dist/unghost");

/** Each twice: on containerd 1.6 and on 2.3. */
const CUTS = 15;
const SEED = 1;

function powerCuts(helper: Helper): readonly (() => Promise<Result>)[] {
  return (["1.6", "2.3"] as const).map(
    (runtime) => () => benchPowerCuts({ unghost, runtime, helper, cuts: CUTS, seed: SEED }),
  );
}

const benchmarks = [
  () => benchEmptyNode(unghost),
  () => benchHalfDeadNode(unghost),
  () => benchCrowdedNode(unghost, "ready"),
  () => benchCrowdedNode(unghost, "dead"),
  () => benchHeal(unghost),
  () => benchHeal(unghost, { containers: ["main"] }),
  () => benchAgent(unghost),
  () => benchExplain(unghost),
  () => benchKeeperCost(unghost),
  () => benchKeeperCost(unghost, { slowWritesPerSecond: 20 }),
  ...powerCuts("none"),
  ...powerCuts("keep"),
  ...powerCuts("agent"),
];

for (const benchmark of benchmarks) {
  const result = await benchmark();
  process.stdout.write(render(result));
  if (result.bars.some(isMissed)) process.exitCode = 1;
}
