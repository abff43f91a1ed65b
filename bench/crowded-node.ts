/**
 * A simulated node with COUNT sandboxes: `node bench/crowded-node.ts COUNT ready|dead`. It is a program of its own,
 * because serving in the process that measures would disturb the measuring. Prints where it is, ends with its stdin.
 */
import { startSimulatedNode } from "../lab/simulated/node.ts";

const [count = "0", fate = "ready"] = process.argv.slice(2);
const node = await startSimulatedNode();
node.addSandboxes(Number(count), { state: "ready" });
if (fate === "dead") await node.powerCut();
console.log(node.root);
process.stdin.resume().once("close", () => void node.close());
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void node.close());
