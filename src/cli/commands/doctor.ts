import { release } from "node:os";
import { diagnose } from "../../diagnose/diagnose.ts";
import { observeNode } from "../../diagnose/observe-node.ts";
import { cniPodRisks } from "../../doctor/cni-pods.ts";
import {
  type Check,
  type DoctorReport,
  neededAndMissing,
  type Risk,
  renderDoctor,
} from "../../doctor/doctor-report.ts";
import { checkCpuShare, checkHost, checkPrivileges } from "../../doctor/host.ts";
import { checkPermissions } from "../../doctor/permissions.ts";
import { renderBefore } from "../../doctor/render-before.ts";
import { beforeRestart, RESTARTS } from "../../doctor/restart.ts";
import { readRestartFacts } from "../../doctor/restart-facts.ts";
import { nodeRisks } from "../../doctor/risks.ts";
import { checkCniFiles, checkSources } from "../../doctor/sources.ts";
import { describeKeeper, publishedKeeper } from "../../durable/keeper-state.ts";
import { resolveOnHost } from "../../host/paths.ts";
import { readRegularFile } from "../../host/safe-fs.ts";
import { clusterCredentials, clusterOpener } from "../../kube/cluster-credentials.ts";
import { ExitCode, type Io, print, wantsColour } from "../io.ts";
import { choice, text } from "../settings/kinds.ts";
import { policyFrom, readAgentPolicy } from "../settings/policy.ts";
import { type NodeSettings, parseGiven, resolveSettings, stateDirOf } from "../settings/read.ts";
import { type NodeFlags, nodeFlagAliases, sourceFlags } from "../settings/table.ts";
import { VERSION } from "../version.ts";
import { defineCommand } from "./index.ts";

const doctorFlags = {
  ...sourceFlags,
  before: text(`What this restart would not survive: ${RESTARTS.join(", ")}`, "RESTART"),
};

export const doctorCommand = defineCommand({
  flags: doctorFlags,
  aliases: nodeFlagAliases,
  run: async ({ before, ...flags }, io) =>
    before === undefined ? await runDoctor(flags, io) : await runBefore(before, flags, io),
});

const EXIT_OF = { yes: ExitCode.ok, no: ExitCode.findings, unknown: ExitCode.unknown } as const;

/** For kured and other programs that restart nodes: the exit code is the answer. */
async function runBefore(given: string, flags: NodeFlags, io: Io): Promise<ExitCode> {
  const restart = parseGiven(choice(RESTARTS, "expected one of"), { value: given, from: "--before" });
  const settings = await resolveSettings(flags, io);
  const snapshot = await observeNode(settings, io.env);
  const { findings } = diagnose(snapshot, settings);
  const before = beforeRestart(restart, await readRestartFacts(snapshot, findings, settings));
  const { node } = settings;
  const document = { apiVersion: "unghost.dev/v1", kind: "RestartReport", version: VERSION, node, ...before };
  const style = { colour: wantsColour(io), columns: io.columns, verbose: settings.verbose };
  await print(settings, document, () => renderBefore(before, node, style), io);
  return EXIT_OF[before.survives];
}

/** Reports what can be read and done here, and why not. Changes nothing. */
async function runDoctor(flags: NodeFlags, io: Io): Promise<ExitCode> {
  const settings = await resolveSettings(flags, io);
  const report = await examine(settings, io.env, await fleetNamespace(flags, io.env));
  const style = { colour: wantsColour(io), columns: io.columns, verbose: settings.verbose };
  await print(settings, report, () => renderDoctor(report, style), io);
  return neededAndMissing(report).length > 0 ? ExitCode.findings : ExitCode.ok;
}

/** The namespace of the agent's Leases: it differs if the chart was installed elsewhere. */
async function fleetNamespace(flags: NodeFlags, env: Io["env"]): Promise<string> {
  const read = await readAgentPolicy(flags, env);
  return (read.ok ? read.value.policy : policyFrom({})).fleet.namespace;
}

async function examine(settings: NodeSettings, env: Io["env"], leasesIn: string): Promise<DoctorReport> {
  const { hostRoot, kubeconfig, node } = settings;
  const places = { root: hostRoot, kubeconfig, env };
  const credentials = settings.noKube ? undefined : clusterCredentials(places)?.credentials;
  const observed = observeNode(settings, env);
  const nodeName = observed.then(({ kubernetes }) => (kubernetes.source === "api" ? kubernetes.nodeName : undefined));
  const [snapshot, asked] = await Promise.all([
    observed,
    credentials === undefined ? NOT_ASKED : askCluster(places, { leasesIn, nodeName }, settings.timeoutMs),
  ]);
  const risks = [...(await nodeRisks(snapshot, hostRoot, settings.timeoutMs)), ...asked.risks];
  const { name, version, endpoint, reachable } = snapshot.runtime;
  const keeper = publishedKeeper(hostRoot);
  return {
    apiVersion: "unghost.dev/v1",
    kind: "DoctorReport",
    version: VERSION,
    node,
    hostRoot,
    kernel: release(),
    os: osName(hostRoot),
    runtime: { name, version, endpoint, reachable },
    kubernetes: { source: snapshot.kubernetes.source, credentials: credentialWords(credentials) },
    cniFiles: { keptDurable: keeper !== undefined, detail: describeKeeper(keeper) },
    checks: [
      ...checkPrivileges(hostRoot),
      ...checkHost({ ...settings, stateDir: stateDirOf(settings), env }),
      ...checkSources(snapshot),
      checkCniFiles(keeper),
      ...checkCpuShare({ env }),
      ...asked.permissions,
    ],
    risks,
  };
}

interface Asked {
  readonly permissions: readonly Check[];
  readonly risks: readonly Risk[];
}

const NOT_ASKED: Asked = { permissions: [], risks: [] };

async function askCluster(
  places: Parameters<typeof clusterOpener>[0],
  about: { readonly leasesIn: string; readonly nodeName: Promise<string | undefined> },
  timeoutMs: number,
): Promise<Asked> {
  try {
    const api = await clusterOpener(places)(timeoutMs);
    if (api === undefined) return NOT_ASKED;
    try {
      const nodeOfCredentials = await nodeInCertificate(places);
      const permissions = await checkPermissions(api, { fleetNamespace: about.leasesIn, nodeOfCredentials });
      const nodeName = await about.nodeName;
      return { permissions, risks: nodeName === undefined ? [] : await cniPodRisks(api, nodeName) };
    } finally {
      api.close();
    }
  } catch {
    // Invalid credentials: the check of the source kubernetes has the reason.
    return NOT_ASKED;
  }
}

/** The node whose kubelet's credentials these are. */
async function nodeInCertificate(places: Parameters<typeof clusterCredentials>[0]): Promise<string | undefined> {
  const found = clusterCredentials(places);
  if (found === undefined) return undefined;
  const { openAccess } = await import("../../kube/cluster.ts");
  return (await openAccess(found.credentials, found.readText)).certificate?.node;
}

function credentialWords(credentials: NonNullable<ReturnType<typeof clusterCredentials>>["credentials"] | undefined) {
  if (credentials === undefined) return "none";
  return credentials.kind === "service-account"
    ? "ServiceAccount of this pod"
    : `${credentials.kind} ${credentials.path}`;
}

function osName(hostRoot: string): string {
  const file = readRegularFile(resolveOnHost(hostRoot, "/etc/os-release", "follow"));
  const content = file.kind === "content" ? file.text : "";
  return /^PRETTY_NAME="?([^"\n]*)/m.exec(content)?.[1] ?? "unknown system";
}
