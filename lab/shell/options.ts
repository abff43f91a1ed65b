import { parseArgs } from "node:util";
import { CONTAINERD_VERSIONS, type RuntimeVersion } from "../runtimes.ts";
import { BROKEN_NODES, type BrokenNode } from "./broken-nodes.ts";

export interface ShellOptions {
  readonly fault: BrokenNode;
  readonly pods: number;
  readonly runtime: RuntimeVersion;
  /** A command instead of a shell. */
  readonly run?: string;
}

const RUNTIMES: readonly RuntimeVersion[] = [...CONTAINERD_VERSIONS, "crio"];
const DEFAULTS = { pods: "4", runtime: "1.6" } as const;
const MAX_PODS = 100;

/** The parsed arguments, or a text to print instead. */
export function shellOptions(
  args: readonly string[],
): ShellOptions | { readonly print: string; readonly code: 0 | 64 } {
  const text = { type: "string" } as const;
  const options = { fault: text, pods: text, runtime: text, run: text };
  const { values } = parseArgs({ args: [...args], options });
  const { fault: name = "", pods = "", runtime = "", run = "" } = values;
  if (name === "" || name === "list") return { print: faultList(), code: 0 };
  const fault = BROKEN_NODES[name];
  if (fault === undefined) return { print: `lab: there is no fault ${name}\n\n${faultList()}`, code: 64 };
  const count = Number(pods || DEFAULTS.pods);
  if (!Number.isInteger(count) || count < 1 || count > MAX_PODS)
    return { print: `lab: PODS is a number from 1 to ${MAX_PODS}, not ${pods}\n`, code: 64 };
  const version = RUNTIMES.find((one) => one === (runtime || DEFAULTS.runtime));
  if (version === undefined)
    return { print: `lab: RUNTIME is one of ${RUNTIMES.join(", ")}, not ${runtime}\n`, code: 64 };
  const possible = fault.runtimes ?? RUNTIMES;
  if (!possible.includes(version))
    return { print: `lab: ${name} can be shown with RUNTIME ${possible.join(", ")} only\n`, code: 64 };
  return { fault, pods: count, runtime: version, ...(run === "" ? {} : { run }) };
}

function faultList(): string {
  const width = Math.max(...Object.keys(BROKEN_NODES).map((name) => name.length));
  const lines = Object.entries(BROKEN_NODES).map(([name, { what, runtimes }]) => {
    const only = runtimes === undefined ? "" : ` (RUNTIME ${runtimes.join(", ")})`;
    return `  ${name.padEnd(width)}  ${what}${only}`;
  });
  return `A shell on a broken node: make lab FAULT=… PODS=${DEFAULTS.pods} RUNTIME=${RUNTIMES.join("|")}
RUN='unghost scan' runs a command instead of a shell. Everything is gone again afterwards.

${lines.join("\n")}
`;
}
