import { join } from "node:path";
import { findCondition, type OwnNode, removeCondition } from "../../agent/kube/withdraw.ts";
import { executableOnHost, type HostWriter, hostWriter, uninstallCommands } from "../../boot/install/apply.ts";
import { hostFiles } from "../../boot/install/detect.ts";
import { mayPurge, planUninstall, type UninstallPlan } from "../../boot/install/plan.ts";
import { describeError } from "../../host/source.ts";
import { clusterOpener } from "../../kube/cluster-credentials.ts";
import { ExitCode, type Io } from "../io.ts";
import { onOff } from "../settings/kinds.ts";
import type { NodeSettings } from "../settings/read.ts";
import { nodeFlags } from "../settings/table.ts";
import { defineCommand } from "./index.ts";
import { agreed, type HookIo, type HookOptions, hookOptions, runCommands } from "./install.ts";

const uninstallFlags = {
  stateDir: nodeFlags.stateDir,
  hostRoot: nodeFlags.hostRoot,
  config: nodeFlags.config,
  kubeconfig: nodeFlags.kubeconfig,
  node: nodeFlags.node,
  noKube: nodeFlags.noKube,
  purge: onOff("The journal and the quarantine, too"),
  force: onOff("Also files that were changed by hand, and a quarantine that holds files"),
  dryRun: onOff("Only print what would be removed"),
  yes: onOff("Do not ask"),
};

export const uninstallCommand = defineCommand({
  flags: uninstallFlags,
  aliases: { y: "yes" },
  run: async ({ purge = false, ...flags }, io) => {
    const { settings, ...options } = await hookOptions(flags, io);
    const ownNode = settings.noKube ? undefined : ownNodeOf(settings, io);
    return await runUninstall({ ...options, purge, uid: process.getuid?.() ?? 0, ownNode }, io);
  },
});

export interface UninstallOptions extends HookOptions {
  /** Deletes the journal, the quarantine and all reports too. */
  readonly purge: boolean;
  readonly uid: number;
  /** The node whose condition may have to be removed; missing if the cluster is not used. */
  readonly ownNode?: OwnNode;
}

/** Kubelet writes its node's name in lower case, whatever the host name is. */
function ownNodeOf(
  { hostRoot, kubeconfig, node }: Pick<NodeSettings, "hostRoot" | "kubeconfig" | "node">,
  { env }: Pick<Io, "env">,
): OwnNode {
  return { openCluster: clusterOpener({ root: hostRoot, kubeconfig, env }), name: node.toLowerCase(), hostRoot };
}

const RUN_DIR = "/run/unghost";

/** Removes what install wrote. Exits 0 all removed, 1 incomplete, 2 detection failed, 3 refused. */
export async function runUninstall(options: UninstallOptions, io: HookIo): Promise<ExitCode> {
  try {
    return await uninstall(options, io);
  } catch (thrown) {
    io.stderr(`Detecting what is installed on this host failed: ${describeError(thrown)}. Run it as root.\n`);
    return ExitCode.unknown;
  }
}

async function uninstall(options: UninstallOptions, io: HookIo): Promise<ExitCode> {
  const purge = options.purge ? await mayPurge(options, options.force) : undefined;
  if (purge?.ok === false) {
    io.stderr(`Nothing was removed: ${purge.refusal.message} ${purge.refusal.next}\n`);
    return ExitCode.refused;
  }
  const plan = withExecutable(planUninstall(hostFiles(options.hostRoot)), options);
  const trees = purge?.value === "there" ? [options.stateDir, RUN_DIR] : [];
  const going = [...plan.remove, ...(plan.removeExecutable ? [plan.removeExecutable] : []), ...trees];
  for (const path of going) io.stdout(`remove     ${path}\n`);
  const condition = await conditionOf(options, io);
  for (const note of plan.notes) io.stdout(`left       ${note}\n`);
  const left = plan.foreign.length > 0 || condition === "unknown" ? ExitCode.findings : ExitCode.ok;
  if (going.length === 0 && condition !== "there") {
    io.stdout("Nothing to do: unghost install has left nothing here.\n");
    return left;
  }
  if (options.dryRun) return left;
  if (!(await agreed("Remove this?", options, io))) return ExitCode.refused;
  const commands = uninstallCommands(plan.remove);
  // A unit that is not loaded cannot be stopped, which is not an error.
  if (options.hostRoot === "/" && options.systemdRuns) {
    for (const command of commands.before) await options.runCommand(command);
  }
  if (!(await remove(plan, trees, options, io))) return ExitCode.findings;
  const failed = await runCommands(commands.after, options, io);
  if (condition === "there" && !(await removedCondition(options, io))) return ExitCode.findings;
  io.stdout(options.purge ? "Removed.\n" : `Removed. The journal and the quarantine in ${options.stateDir} stay.\n`);
  return failed ? ExitCode.findings : left;
}

async function conditionOf({ ownNode }: UninstallOptions, io: HookIo): Promise<"there" | "gone" | "unknown"> {
  if (ownNode === undefined) return "gone";
  const found = await findCondition(ownNode);
  const what = `the conditions GhostSandboxes and SandboxCreation of node ${ownNode.name}`;
  if (found === "there") io.stdout(`remove     ${what}\n`);
  if (typeof found === "string") return found;
  io.stdout(`left       ${what}, if they exist: ${found.message} (--no-kube does not ask)\n`);
  return "unknown";
}

/** Last, because a running agent would publish it again. */
async function removedCondition({ ownNode }: UninstallOptions, io: HookIo): Promise<boolean> {
  const error = ownNode && (await removeCondition(ownNode));
  if (error === undefined) return true;
  const patch =
    '{"status":{"conditions":[{"type":"GhostSandboxes","$patch":"delete"},{"type":"SandboxCreation","$patch":"delete"}]}}';
  io.stderr(
    `The node's conditions could not be removed: ${error.message}. Remove them with: kubectl patch node ${ownNode?.name} --subresource=status --type=strategic -p '${patch}'\n`,
  );
  return false;
}

interface Going extends UninstallPlan {
  readonly removeExecutable: string | undefined;
  readonly notes: readonly string[];
}

function withExecutable(plan: UninstallPlan, { hostRoot, force }: UninstallOptions): Going {
  const notes = plan.foreign.map((path) => `${path}: it does not carry the line of unghost install`);
  const { executable } = plan;
  const there = executable && executableOnHost(hostRoot, executable.path);
  if (executable === undefined || there === undefined) return { ...plan, removeExecutable: undefined, notes };
  if (force || there === executable.sha256) return { ...plan, removeExecutable: executable.path, notes };
  const replaced = `${executable.path}: it is not the one that install put there (--force removes it)`;
  return { ...plan, removeExecutable: undefined, notes: [...notes, replaced] };
}

async function remove(
  plan: Going,
  trees: readonly string[],
  { hostRoot }: UninstallOptions,
  io: HookIo,
): Promise<boolean> {
  const writer: HostWriter = hostWriter(hostRoot);
  const executable = plan.removeExecutable === undefined ? [] : [plan.removeExecutable];
  let at = hostRoot;
  try {
    for (const path of [...plan.remove.slice(0, -1), ...executable, ...plan.remove.slice(-1)])
      await writer.remove((at = path));
    for (const path of trees) await writer.removeTree((at = path));
    for (const path of plan.directories) await writer.removeEmptyDirectory((at = path));
    return true;
  } catch (thrown) {
    io.stderr(`${join(hostRoot, at)} could not be removed: ${describeError(thrown)}. Run uninstall again.\n`);
    return false;
  }
}
