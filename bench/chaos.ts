/** `make chaos`: random faults on real nodes, healed round by round: `node bench/chaos.ts [ROUNDS] [SEED]`. */
import { dirname, resolve } from "node:path";
import { runChaos } from "../lab/chaos/run.ts";
import { ensureContainerd, whyNoRealNode } from "../lab/tools.ts";

const why = whyNoRealNode();
if (why !== undefined) throw new Error(`chaos needs a real node: ${why}`);

const [rounds = "200", seed = String(Date.now() % 1_000_000)] = process.argv.slice(2);
const unghost = resolve(process.env["UNGHOST_BIN"] ?? "dist/unghost");
const runtimes = (await ensureContainerd()).available ? (["1.6", "2.3"] as const) : (["1.6"] as const);

console.log(`${rounds} rounds with seed ${seed} on containerd ${runtimes.join(" and ")}`);
const complaints = await runChaos({
  unghost,
  rounds: Number(rounds),
  seed: Number(seed),
  runtimes,
  visible: [dirname(unghost)],
  onRound: (round, result) => {
    const { length } = result.complaints;
    console.log(`${round}: ${length === 0 ? "well" : `${length} complaints`}; ${result.story.join("; ")}`);
  },
});
for (const complaint of complaints) console.error(complaint);
console.log(`${rounds} rounds, ${complaints.length} complaints, seed ${seed}`);
process.exitCode = complaints.length === 0 ? 0 : 1;
