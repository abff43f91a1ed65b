/**
 * A simulated node with COUNT sandboxes: `node bench/crowded-node.ts COUNT ready|dead`. A separate program, because
 * serving in the measuring process would disturb the measurement. Prints its root, ends with its stdin.
 */
import { startSimulatedNode } from "../lab/simulated/node.ts";

const [count = "0", fate = "ready"] = process.argv.slice(2);
const node = await startSimulatedNode();
node.addSandboxes(Number(count), { state: "ready" });
if (fate === "dead") await node.powerCut();
console.log(node.root);
process.stdin.resume().once("close", () => void node.close());
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void node.close());
