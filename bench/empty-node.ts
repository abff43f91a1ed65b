import { dirname, resolve } from "node:path";
import { findCrictl } from "../lab/crictl.ts";
import { startNode } from "../lab/node.ts";
import { CONTAINERD_SOCKET } from "../lab/runtime-config.ts";
import { whyNoRealNode } from "../lab/tools.ts";
import type { Summary } from "./measure.ts";
import type { Result } from "./result.ts";

const ROUNDS = 40;
const MAX_TIMES_CRICTL = 2;

/** The cost of a scan of a real node without pods, compared with crictl, which only lists. */
export async function benchEmptyNode(unghost: string): Promise<Result> {
  const title = "scan of an empty real node, process start to exit";
  const why = whyNoRealNode();
  if (why !== undefined) return { title, rows: [], bars: [], notes: [`not run: ${why}`] };
  const crictl = findCrictl();
  const node = await startNode({
    visible: [unghost, ...(crictl === undefined ? [] : [crictl])].map((path) => dirname(path)),
  });
  try {
    const endpoint = ["--runtime-endpoint", `unix://${CONTAINERD_SOCKET}`];
    const commands = {
      "unghost scan": [unghost, "scan", "--no-kube", ...endpoint],
      "unghost --version": [unghost, "--version"],
      ...(crictl === undefined ? {} : { "crictl pods": [crictl, ...endpoint, "pods"] }),
    };
    const inside = resolve(import.meta.dirname, "inside.ts");
    const printed = await node.check([process.execPath, inside, String(ROUNDS), JSON.stringify(commands)]);
    const summaries = JSON.parse(printed) as Readonly<Record<string, Summary>>;
    const rows = Object.entries(summaries).map(([name, summary]) => ({ name, summary }));
    return { title, rows, ...compared(summaries) };
  } finally {
    await node.destroy();
  }
}

/** Compares the fastest runs, which were disturbed least. */
function compared(summaries: Readonly<Record<string, Summary>>): Pick<Result, "bars" | "notes"> {
  const { "unghost scan": scan, "crictl pods": crictl } = summaries;
  if (scan === undefined || crictl === undefined) {
    return { bars: [], notes: ["no crictl on PATH or in the lab's cache: nothing to compare with"] };
  }
  return {
    bars: [{ name: "scan / crictl pods, fastest", value: scan.minMs / crictl.minMs, most: MAX_TIMES_CRICTL }],
    notes: [`medians: ${(scan.medianMs / crictl.medianMs).toFixed(2)} times crictl's`],
  };
}
