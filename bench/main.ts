/** `make bench`: what unghost costs, side by side with crictl where there is one. Ends with 1 when a bar is missed. */
import { resolve } from "node:path";
import { benchAgent } from "./agent-idle.ts";
import { benchCrowdedNode } from "./crowded.ts";
import { benchEmptyNode } from "./empty-node.ts";
import { benchHeal } from "./heal.ts";
import { isMissed, render } from "./result.ts";

const unghost = resolve(process.env["UNGHOST_BIN"] ?? "dist/unghost");

const benchmarks = [
  () => benchEmptyNode(unghost),
  () => benchCrowdedNode(unghost, "ready"),
  () => benchCrowdedNode(unghost, "dead"),
  () => benchHeal(unghost),
  () => benchHeal(unghost, { containers: ["main"] }),
  () => benchAgent(unghost),
];

for (const benchmark of benchmarks) {
  const result = await benchmark();
  process.stdout.write(render(result));
  if (result.bars.some(isMissed)) process.exitCode = 1;
}
