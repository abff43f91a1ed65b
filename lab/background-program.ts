import { readFileSync } from "node:fs";
import type { LabNode } from "./node.ts";
import { until } from "./poll.ts";

const GUARD_MS = 300_000;

let programs = 0;

/** Starts a Python program in the node, and returns what it prints once it is ready. It ends with the node. */
export async function inBackground(
  node: LabNode,
  program: string,
  args: readonly string[],
  { user, env = {} }: { readonly user?: number; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<string> {
  const file = `/tmp/lab-${programs++}`;
  await node.check(["tee", `${file}.py`], { stdin: program });
  await node.check(["sh", "-c", `touch ${file}.out; chmod 666 ${file}.out`]);
  const command = `exec setsid python3 ${file}.py "$@" </dev/null >${file}.out 2>&1 &`;
  await node.check(["sh", "-c", command, "sh", ...args], user === undefined ? { env } : { env, user });
  return await until(`${args.join(" ")} is ready`, GUARD_MS, () => {
    const output = readFileSync(node.livePath(`${file}.out`), "utf8");
    if (output.includes("Error")) throw new Error(output);
    return output.includes("ready") ? output : undefined;
  });
}
