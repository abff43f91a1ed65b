import { raisePriority, restartForCommand } from "./cli/process.ts";
import { READ_MEMORY, serveMemory } from "./host/memory-child.ts";
import { runSystemCall, SYSTEM_CALL } from "./host/system-call.ts";

/** As `kubectl-unghost` on the PATH it is kubectl's plugin: the cluster from an operator's machine. */
const isPlugin = /(?:^|[/\\])kubectl-unghost(?:\.exe)?$/i.test(process.argv0);
const given = process.argv.slice(2);
const args = isPlugin ? asPlugin(given) : given;

const [, , command, call] = process.argv;
if (command === SYSTEM_CALL) process.exit(call === READ_MEMORY ? serveMemory() : runSystemCall(process.argv.slice(3)));
// Runs at every failed DEL of a node: without the command line's modules.
if (command === "cni-call") {
  const { runCniCall } = await import("./cli/cni-call.ts");
  process.exit(await runCniCall(process.argv.slice(3)));
}

raisePriority(args[0]);
restartForCommand(args[0], process.env);

// Loaded late, because modules loaded before a restart are loaded twice.
const { runCli } = await import("./cli/app.ts");
const { processIo } = await import("./cli/io.ts");

// Exits at once: output is written synchronously, and open handles of a source or a child are not waited for.
process.exit(await runCli(args, processIo()));

/**
 * `kubectl unghost scan` is `unghost fleet scan`; what completes it is asked for the words behind `fleet`. An error line
 * means the same everywhere: explain needs no cluster.
 */
function asPlugin([first, ...rest]: readonly string[]): readonly string[] {
  if (first === undefined) return ["fleet"];
  if (first === "explain") return [first, ...rest];
  if (first === "__complete")
    return rest[0] === "explain" && rest.length > 1 ? [first, ...rest] : [first, "fleet", ...rest];
  return ["fleet", first, ...rest];
}
