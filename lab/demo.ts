/**
 * `make demo`: a power cut of a node (with --cluster in a real cluster), step by step. Leaves nothing behind, however
 * it ends.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { processIo, wantsColour } from "../src/cli/io.ts";
import { cacheDir } from "./cache.ts";
import { ensureClusterTools } from "./cluster/tools.ts";
import { clusterStory } from "./demo/cluster-story.ts";
import { narrator } from "./demo/narrator.ts";
import { realStage } from "./demo/real-stage.ts";
import { SCENES } from "./demo/scenes.ts";
import { simulatedStage } from "./demo/simulated-stage.ts";
import type { Stage } from "./demo/stage.ts";
import { ensureTools, whyNoRealNode } from "./tools.ts";

const GONE = "Everything is gone again: no process, mount, network or file is left.";
const io = processIo();
const tell = narrator(io);

/** The output of unghost is indented by two columns, and coloured like ours. */
const env = {
  PATH: process.env["PATH"] ?? "",
  COLUMNS: String(Math.max(40, Math.min(io.columns, 110) - 2)),
  ...(wantsColour(io) ? { FORCE_COLOR: "1" } : { NO_COLOR: "1" }),
};

// Exiting cleans the node up; dying by the signal itself would not.
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const) {
  process.once(signal, () => process.exit(code));
}

try {
  if (process.argv.includes("--cluster")) await playInCluster();
  else await play(await openStage());
} catch (error) {
  io.stderr(`demo: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

async function openStage(): Promise<Stage> {
  const why = whyNoRealNode() ?? (await whyNoTools());
  return why === undefined ? await realStage(env) : await simulatedStage(why, env);
}

async function whyNoTools(): Promise<string | undefined> {
  if (!existsSync(join(cacheDir(), "debian-tools"))) tell.say("Fetching containerd, runc and CNI plugins, once …");
  try {
    await ensureTools();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function playInCluster(): Promise<void> {
  const programs = await ensureClusterTools();
  if (!programs.available) throw new Error(programs.reason);
  await clusterStory(tell);
  tell.say(GONE);
}

async function play(stage: Stage): Promise<void> {
  try {
    for (const scene of SCENES) await scene(stage, tell);
  } finally {
    await stage.clear();
  }
  tell.say(GONE);
}
