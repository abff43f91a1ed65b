import { dirname } from "node:path";
import type { LeaseRef } from "../classes/step.ts";
import { compareVersions, parseVersion } from "../classes/versions/version.ts";
import { parseNetworkConf } from "../snapshot/cni-conf.ts";
import { resolveOnHost } from "../snapshot/host-paths.ts";
import { parseJson, property } from "../snapshot/json.ts";
import { readRegularFile } from "../snapshot/safe-fs.ts";
import { absent, failed, read, type Source } from "../snapshot/source.ts";
import { type Attachment, validAttachments } from "./cni-attachments.ts";
import { type CniFailure, type CniPlace, cniGc, cniVersions } from "./cni-exec.ts";
import type { NodeTools } from "./node-tools.ts";

/**
 * Asks the plugins of a network to free what one sandbox left behind (GC, from CNI 1.1 on). They are told what is still
 * valid and free everything else, so every other attachment that anybody has a trace of is named, and a single source
 * that cannot be read means that nobody is asked. Gives the reason where not all of them were asked with success.
 *
 * The specification forbids ADD and DEL beside GC: what is attached in between is not among the valid, and so is freed
 * (on a busy node GC took the addresses of pods that had just come up). Only a runtime could hold them back; we ask
 * while no kubelet runs and no plugin is at work, as before kubelet's start at boot, and else leave it to DEL.
 */
export async function collectGarbage(sandboxId: string, lease: LeaseRef, tools: NodeTools): Promise<CniFailure> {
  const conf = readConf(lease.network, tools);
  if (conf.status !== "read") return wordsOf(conf);
  const network = collectable(conf.value, lease);
  if (network.status !== "read") return wordsOf(network);
  const { name, cniVersion, plugins } = network.value;
  const place = { hostRoot: tools.hostRoot, binDirs: tools.binDirs, timeoutMs: tools.waits.lookMs };
  const asked = await thatSpeak(cniVersion, plugins, place);
  if (asked.length === 0) return `no plugin of ${name} says that it speaks CNI ${cniVersion}`;

  const failures: string[] = [];
  for (const plugin of asked) {
    const valid = await validAttachments(sandboxId, lease, tools);
    const failure =
      valid.status === "read"
        ? await cniGc({ plugin: typeOf(plugin), config: gcConfig(plugin, network.value, valid.value) }, place)
        : `not called: ${wordsOf(valid)}`;
    if (failure !== undefined) failures.push(`${typeOf(plugin)}: ${failure}`);
  }
  return failures.length === 0 ? undefined : failures.join("; ");
}

interface CollectableNetwork {
  readonly name: string;
  readonly cniVersion: string;
  readonly plugins: readonly object[];
}

/** The network's configuration as it is now, if it is the one that the runtime uses. */
function readConf(network: string, { conf, hostRoot }: NodeTools): Source<string> {
  if (conf?.network !== network) return absent(`${network} is not the network that the runtime uses`);
  const file = readRegularFile(resolveOnHost(hostRoot, conf.file, "follow"));
  return file.kind === "content" ? read(file.text) : failed(`${conf.file} cannot be read`);
}

const GC_SINCE = { major: 1, minor: 1, patch: 0 };

/** Whether GC may be called for a network with this configuration, and in which version of CNI. */
export function collectable(text: string, lease: Pick<LeaseRef, "network" | "path">): Source<CollectableNetwork> {
  const list = parseJson(text);
  const conf = parseNetworkConf(text, property(list, "plugins") !== undefined);
  if ("problem" in conf) return failed(`the configuration of ${lease.network} ${conf.problem}`);
  const { network: name, chain: plugins } = conf;
  if (name !== lease.network) return absent(`${lease.network} is configured no longer`);
  // Its purpose is a network that several runtimes share: each would free what the others use.
  const disabled = property(list, "disableGC");
  if (disabled !== undefined && disabled !== false) return absent(`disableGC is set for ${name}`);

  const cniVersion = versionWithGc([conf.cniVersion, ...stringsIn(property(list, "cniVersions"))]);
  if (cniVersion === undefined) return absent(`${name} is configured for a version of CNI that has no GC`);
  const dataDirs = plugins.map((plugin) => property(property(plugin, "ipam"), "dataDir"));
  if (dataDirs.some((dir) => dir !== undefined && dir !== dirname(dirname(lease.path)))) {
    return failed(`${name} keeps addresses in a directory of its own (dataDir), which was not read`);
  }
  return read({ name, cniVersion, plugins });
}

/** A configuration may name several versions; the highest is the one to be spoken. */
function versionWithGc(texts: readonly string[]): string | undefined {
  const versions = texts.flatMap((text) => {
    const parsed = parseVersion(text);
    return parsed === undefined ? [] : [{ text, parsed }];
  });
  const [highest] = versions.toSorted((one, other) => compareVersions(other.parsed, one.parsed));
  return highest !== undefined && compareVersions(highest.parsed, GC_SINCE) >= 0 ? highest.text : undefined;
}

/**
 * libcni calls every plugin and lets those that do not know the version fail. Such a plugin would have refused ADD, too,
 * so it holds nothing that GC could free.
 */
async function thatSpeak(version: string, plugins: readonly object[], place: CniPlace): Promise<readonly object[]> {
  const speakers: object[] = [];
  for (const plugin of plugins) {
    if ((await cniVersions(typeOf(plugin), place)).includes(version)) speakers.push(plugin);
  }
  return speakers;
}

function gcConfig(plugin: object, { name, cniVersion }: CollectableNetwork, valid: readonly Attachment[]): object {
  return {
    ...plugin,
    name,
    cniVersion,
    "cni.dev/valid-attachments": valid,
    // The specification called it so at first. A plugin that looks for this name would take its absence for "none".
    "cni.dev/attachments": valid,
  };
}

function wordsOf(source: Exclude<Source<unknown>, { status: "read" }>): string {
  return source.status === "absent" ? source.reason : source.error.message;
}

function typeOf(plugin: object): string {
  return String(property(plugin, "type"));
}

function stringsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}
