/**
 * Measures commands from within a lab node, so that entering it is not counted:
 * `node bench/inside.ts ROUNDS '{"name": ["command", "argument"]}'`. Prints summaries as JSON.
 */
import { interleaved, measure } from "./measure.ts";

const [rounds = "1", list = "{}"] = process.argv.slice(2);
const commands = JSON.parse(list) as Readonly<Record<string, readonly string[]>>;
const env = { PATH: "/usr/bin:/bin", HOME: "/root" };
const runs = new Map(Object.entries(commands).map(([name, command]) => [name, () => measure(command, env)] as const));
console.log(JSON.stringify(Object.fromEntries(await interleaved(runs, Number(rounds)))));
