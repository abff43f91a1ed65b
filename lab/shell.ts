/** `make lab`: a shell on a broken node. Leaves nothing behind, however it ends. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname } from "node:path";
import { findCrictl } from "./crictl.ts";
import { unghostProgram } from "./demo/unghost-program.ts";
import { type LabNode, startNode } from "./node.ts";
import { enterNode } from "./node-exec.ts";
import { type ShellOptions, shellOptions } from "./shell/options.ts";

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
const say = (text: string) => process.stderr.write(`${text}\n`);

const options = shellOptions(process.argv.slice(2));
if ("print" in options) {
  (options.code === 0 ? process.stdout : process.stderr).write(options.print);
  process.exitCode = options.code;
} else {
  // Exiting cleans the node up; dying by the signal itself would not.
  for (const [signal, code] of Object.entries(SIGNALS)) process.on(signal, () => process.exit(code));
  try {
    process.exitCode = await lab(options);
  } catch (error) {
    say(`lab: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}

async function lab({ fault, pods, runtime, run }: ShellOptions): Promise<number> {
  const unghost = unghostProgram().command[0] ?? "";
  const crictl = findCrictl();
  const programs = [unghost, crictl].filter((path) => path !== undefined).map(dirname);
  say(`Starting a node with ${runtime === "crio" ? "CRI-O" : `containerd ${runtime}`} …`);
  const node = await startNode({ runtime, visible: programs, ...(fault.cni === undefined ? {} : { cni: fault.cni }) });
  try {
    await node.writeFile("/etc/crictl.yaml", `runtime-endpoint: unix://${node.socketInNode}\n`);
    for (const did of await fault.inject(node, pods)) say(`- ${did}`);
    say(`\n${fault.what}.\nTry next:\n${fault.next.map((command) => `  ${command}`).join("\n")}`);
    return await inside(node, programs, run);
  } finally {
    await node.destroy();
    say("The node is gone again: no process, mount, network or file of it is left.");
  }
}

/** Runs the command or the shell with this process's terminal; returns its exit code. */
async function inside(node: LabNode, programs: readonly string[], run: string | undefined): Promise<number> {
  if (run === undefined) say(`\nA shell on ${node.hostname}; exit ends the node.\n`);
  const command = run === undefined ? ["bash", "--norc", "--noprofile", "-i"] : ["sh", "-c", run];
  const env = { TERM: process.env["TERM"] ?? "dumb", PS1: `${node.hostname}# ` };
  const { words, environment } = enterNode(node.initPid, [...programs, ...node.binDirs], command, { env });
  const [file = "", ...args] = words;
  const child = spawn(file, args, { env: environment, stdio: "inherit" });
  // Ctrl-C is for the shell.
  if (run === undefined) process.removeAllListeners("SIGINT").on("SIGINT", () => undefined);
  return await exitCode(child);
}

async function exitCode(child: ChildProcess): Promise<number> {
  const [code, signal] = (await once(child, "exit")) as [number | null, keyof typeof SIGNALS | null];
  return code ?? SIGNALS[signal ?? "SIGTERM"] ?? 1;
}
