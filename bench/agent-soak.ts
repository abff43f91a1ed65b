/**
 * Soak test: random faults against the agent on a simulated node. `node bench/agent-soak.ts [FAULTS] [SEED]`. Exits 1
 * if a limit is exceeded.
 */
import { resolve } from "node:path";
import { soak } from "./agent-soak-run.ts";
import { type Bar, isMissed, render } from "./result.ts";

const MAX_COMPLAINTS = 0;
/** The last tenth of the run compared with the second one, because the first one fills caches. */
const MAX_GROWTH = 1.05;

const [faults = "10000", seed = String(Date.now() % 1_000_000)] = process.argv.slice(2);
const unghost = resolve(process.env["UNGHOST_BIN"] ?? "dist/unghost");

const { complaints, rounds } = await soak({ unghost, faults: Number(faults), seed: Number(seed) });
const megabytes = rounds.map(({ rssMb }) => rssMb);
const tenth = Math.max(1, Math.floor(megabytes.length / 10));
const growth = median(megabytes.slice(-tenth)) / median(megabytes.slice(tenth, 2 * tenth));
const memory = `memory at the end, healing without a pause: ${median(megabytes.slice(-tenth)).toFixed(0)} MB`;
const bars: readonly Bar[] = [
  { name: "complaints", value: complaints.length, most: MAX_COMPLAINTS },
  { name: "memory, last tenth / second tenth", value: growth, most: MAX_GROWTH },
];
process.stdout.write(
  render({
    title: `${faults} random faults against the agent, seed ${seed}`,
    rows: [],
    bars,
    notes: [memory, ...complaints],
  }),
);
process.exitCode = bars.some(isMissed) ? 1 : 0;

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}
