import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterEach, expect, test } from "vitest";
import { type Cluster, startCluster } from "../../lab/cluster/cluster.ts";
import { isReady, podObjects } from "../../lab/cluster/objects.ts";
import { ensureHelm } from "../../lab/cluster/tools.ts";
import { importUnghostImage } from "../../lab/cluster/unghost-image.ts";
import type { CommandResult } from "../../lab/command.ts";
import { ensureCrictl } from "../../lab/crictl.ts";
import { until } from "../../lab/poll.ts";
import { UNGHOST } from "../e2e/unghost.ts";
import { documentedCommands, NOTES, placeOf, typedInNotes } from "../support/documented-commands.ts";
import { throughPortForward } from "./agent-pod.ts";
import { HANG_GUARD_MS, stopFails, WAIT_MS } from "./lab-cluster.ts";
import { makeGhost } from "./pod-ghost.ts";

const COMMAND_MS = 300_000;
/** Where REGISTRY is in the lab: the image is in the node's runtime already. */
const REGISTRY = "lab.test/team";
const GHOST_CLASS = "libcni-result-cache-corrupt";
/** What runs until it is stopped gets so long to fail instead. */
const FOREVER = /^(?:unghost (?:agent|keep(?!.*--once))|(?:kubectl unghost|unghost fleet) (?:watch|dashboard))/;
const FOREVER_SECONDS = 10;
const STOPPED_BY_TIMEOUT = 124;

const commands = documentedCommands().filter(({ notRun }) => notRun === undefined);
const texts = (place: "cluster" | "node") =>
  commands.filter((one) => one.page !== NOTES && placeOf(one) === place).map(({ command }) => command);

let story: Cluster | undefined;
let programs: string | undefined;
afterEach(async () => {
  await story?.destroy();
  if (programs !== undefined) rmSync(programs, { recursive: true });
  story = programs = undefined;
}, HANG_GUARD_MS);

test(
  "every command of the documents runs as printed, on the node and in the cluster",
  async () => {
    story = await startCluster({ runtime: "1.6", kubelet: { runtimeRequestTimeout: "5s" } });
    const reader = await readerOf(story);
    const failed: string[] = [];
    const type = async (typed: readonly string[], run: Run) => {
      for (const command of typed) {
        const ended = await run(await reader.filled(command));
        console.log(`[${ended.code}] ${command}`);
        if (!codesOf(command).includes(ended.code ?? -1)) {
          failed.push(`${command} ended with ${ended.code}: ${ended.stderr.slice(-600)} ${ended.stdout.slice(-300)}`);
        }
      }
    };

    await reader.breakPod();
    const onNode = texts("node");
    await type(
      onNode.filter((command) => !command.includes("AGENT") && !/^crictl (?:stop|rm)/.test(command)),
      reader.node,
    );
    const [install = "", ...others] = inStages(texts("cluster"), [/^helm install/]);
    const [leave, between] = [others.filter(isLeaving), others.filter((command) => !isLeaving(command))];
    const notes = await reader.cluster(await reader.filled(install));
    const next = typedInNotes(notes.stdout);
    expect([notes.code, notes.stderr, next.length > 5]).toEqual([0, "", true]);
    await story.waitForCondition(story.node, "GhostSandboxes", () => true);
    await type([...next, ...between], reader.cluster);
    const agentOrContainer = onNode.filter((command) => /AGENT|^crictl (?:stop|rm)/.test(command));
    await type(inStages(agentOrContainer, [/AGENT/]), reader.node);
    await type(inStages(leave, LEAVING), reader.cluster);

    expect(failed).toEqual([]);
  },
  HANG_GUARD_MS,
);

const LEAVING = [/^helm upgrade/, /^helm uninstall/, /apply -k deploy/, /delete -k deploy/, /^unghost withdraw/];

function isLeaving(command: string): boolean {
  return LEAVING.some((stage) => stage.test(command));
}

/** The commands of the first stage first, and so on; the others after them. */
function inStages(typed: readonly string[], stages: readonly RegExp[]): readonly string[] {
  const rankOf = (command: string) => stages.findIndex((stage) => stage.test(command)) >>> 0;
  return typed.toSorted((one, other) => rankOf(one) - rankOf(other));
}

/** Exit codes that a reader meets when the command worked: findings, or nothing recognised, are answers. */
function codesOf(command: string): readonly number[] {
  if (FOREVER.test(command)) return [STOPPED_BY_TIMEOUT];
  // In the chart's own pod everything needed is there.
  if (/unghost-agent -- unghost doctor/.test(command)) return [0];
  return /unghost (?:doctor|explain|fleet|heal|scan|why)\b/.test(command) ? [0, 1] : [0];
}

function bounded(command: string): string {
  return FOREVER.test(command) ? `timeout ${FOREVER_SECONDS} ${command}` : command;
}

type Run = (command: string) => Promise<CommandResult>;

/** What a reader has in place of the names in capitals, and the terminals to type in. */
async function readerOf(cluster: Cluster) {
  const { controlPlane, node } = cluster;
  const dir = mkdtempSync(`${process.cwd()}/dist/reader-`);
  programs = dir;
  symlinkSync(await ensureHelm(), join(dir, "helm"));
  const crictl = await ensureCrictl();
  if (typeof crictl !== "string") throw new Error(crictl.reason);
  symlinkSync(crictl, join(dir, "crictl"));
  await node.lab.writeFile("/etc/crictl.yaml", `runtime-endpoint: unix://${node.lab.socketInNode}\n`);
  for (const name of ["unghost", "kubectl-unghost"]) symlinkSync(resolve(UNGHOST), join(dir, name));
  await importUnghostImage(node);
  const [image = ""] = (await node.lab.check(["ctr", "-n", "k8s.io", "images", "ls", "-q"]))
    .split("\n")
    .filter((name) => /\/unghost:/.test(name));
  await node.lab.check(["ctr", "-n", "k8s.io", "images", "tag", image, image.replace(/^.*\//, `${REGISTRY}/`)]);

  async function breakPod(): Promise<void> {
    await cluster.kubectl("create", "namespace", "shop");
    await until("the namespace has its ServiceAccount", WAIT_MS, () =>
      cluster.kubectl("get", "serviceaccount", "default", "--namespace=shop").catch(() => undefined),
    );
    const objects = podObjects(["web-0", "web-1"], node.name).map((object) => ({
      ...object,
      metadata: { ...(object as { readonly metadata: object }).metadata, namespace: "shop" },
    }));
    await cluster.apply(objects);
    await until("both pods run", WAIT_MS, async () => {
      const pods = await cluster.pods("shop");
      return (pods.length === 2 && pods.every(isReady)) || undefined;
    });
    await makeGhost(node, "web-0");
    await stopFails(node, ["web-0"]);
  }

  const env = { PATH: `${dir}:${node.lab.binDirs.join(":")}:/usr/sbin:/usr/bin:/sbin:/bin`, TERM: "xterm" };
  const answer = (command: string) => node.lab.check(["sh", "-c", command], { env });

  const onNode: Run = (command) => {
    // A terminal, where questions are answered with yes.
    const typed = ["script", "--quiet", "--return", "--command", `cd /root && ${bounded(command)}`, "/dev/null"];
    return node.lab.exec(typed, { timeoutMs: COMMAND_MS, stdin: "y\n", env });
  };

  async function inCluster(command: string): Promise<CommandResult> {
    if (command.includes("port-forward")) {
      const page = await throughPortForward(cluster, command, "/");
      return { code: page.includes("<html") ? 0 : 1, stdout: page, stderr: "", timedOut: false };
    }
    const script = `cd ${process.cwd()} && PATH=${dir}:$PATH && ${bounded(command)}`;
    return await controlPlane.tryShell(script, { timeoutMs: COMMAND_MS, stdin: "y\n" });
  }

  async function firstOf(command: string): Promise<string> {
    const { stdout } = await inCluster(command);
    return stdout.trim().split("\n")[0] ?? "";
  }

  const undoable = async (): Promise<string> => {
    const { entries } = JSON.parse(await answer("unghost history -o json")) as {
      readonly entries: readonly { id: string; undoable: boolean }[];
    };
    return entries.findLast((entry) => entry.undoable)?.id ?? "no-such-entry";
  };

  const lastRun = async (): Promise<string> => {
    const { entries } = JSON.parse(await answer("unghost history -o json")) as {
      readonly entries: readonly { run: string }[];
    };
    return entries.at(-1)?.run ?? "no-such-run";
  };

  const quarantined = async (): Promise<string> => {
    const { entries } = JSON.parse(await answer("unghost quarantine list -o json")) as {
      readonly entries: readonly { id: string }[];
    };
    return entries.at(-1)?.id ?? "no-such-entry";
  };

  // The same for all commands of one text: kubelet starts another one when it ends.
  let chosen: string | undefined;
  const container = async (): Promise<string> => {
    chosen ??= (await answer("crictl ps -q")).trim().split(/\s+/)[0] ?? "";
    return chosen;
  };

  async function filled(command: string): Promise<string> {
    const agent = () => firstOf("kubectl -n unghost get pods -o jsonpath='{.items[0].metadata.name}'");
    const debugPod = () => firstOf("kubectl get pods -o name | sed -n 's#^pod/##;/node-debugger/p' | head -1");
    const names: readonly (readonly [RegExp, () => Promise<string> | string])[] = [
      [/node-debugger-NAME-…/, debugPod],
      [/REGISTRY\/unghost/, () => `${REGISTRY}/unghost`],
      [/NAMESPACE\/POD/, () => "shop/web-0"],
      [/node\/NAME/, () => `node/${node.name}`],
      [/\bIMAGE\b/, () => image],
      [/\bPOD\b/, agent],
      [/\bNODE\b(?!:)/, () => node.name],
      [/\bedge-0[37]\b/, () => node.name],
      [/\bCLASS\b/, () => GHOST_CLASS],
      [/"MESSAGE"/, () => `'failed to reserve sandbox name "web-0_shop_1_0": name is reserved for "1"'`],
      [/\bAGENT\b/, () => "127.0.0.1:20258"],
      [/\bunghost-image\.tar/, () => resolve("dist/unghost-image.tar")],
      [/(?<=history )RUN\b/, lastRun],
      [/(?<=quarantine \w+ )ID\b/, quarantined],
      [/\bID\b/, () => (command.startsWith("crictl") ? container() : undoable())],
    ];
    let text = command;
    for (const [name, value] of names) if (name.test(text)) text = text.replace(name, await value());
    return text;
  }

  return { breakPod, node: onNode, cluster: inCluster, filled };
}
