import { posix } from "node:path";
import { K3S_DATA } from "../host/distributions.ts";
import { resolveOnHost } from "../host/paths.ts";
import { entriesIn, readRegularFile } from "../host/safe-fs.ts";
import { absent, failed, read, type Source } from "../host/source.ts";
import { provePath } from "../host/trusted-path.ts";
import { settingIn } from "../runtime/find.ts";
import { configOf, flagOf, runningKubelets } from "./kubelet-process.ts";
import type { ProcessTable } from "./process-table.ts";
import type { StaticManifest } from "./types/snapshot.ts";

const IN_KUBELET_CONFIG = /^staticPodPath:[ \t]*["']?([^"'#\s]+)/m;
const MANIFEST = /^[^.].*\.(?:yaml|yml|json)$/;
const MAX_MANIFESTS = 50;
const MAX_MANIFEST_BYTES = 256 * 1024;

/** The manifests of static pods that the running kubelet reads, as far as their pod's name can be read. */
export async function readStaticManifests(where: {
  readonly root: string;
  readonly signal: AbortSignal;
  readonly table: Promise<Source<ProcessTable>>;
}): Promise<Source<readonly StaticManifest[]>> {
  const { root, signal, table } = where;
  const { trusted } = await runningKubelets(root, signal, table);
  const dir = trusted.flatMap(({ argv }) => manifestDir(argv, root) ?? [])[0];
  if (dir === undefined) return absent("no running kubelet has a directory of static pods");
  const trust = provePath(root, dir);
  if (trust.kind === "refused") return failed(`the static pods in ${dir} are not used: ${trust.detail}`, trust.next);
  const names = entriesIn(resolveOnHost(root, dir, "follow")).flatMap(({ name, kind }) =>
    kind === "file" && MANIFEST.test(name) ? [name] : [],
  );
  return read(
    names.slice(0, MAX_MANIFESTS).flatMap((name) => {
      const path = posix.join(dir, name);
      const file = readRegularFile(resolveOnHost(root, path, "follow"), MAX_MANIFEST_BYTES);
      const pod = file.kind === "content" ? podIn(file.text) : undefined;
      return pod === undefined || file.kind !== "content" ? [] : [{ path, ...pod, modifiedAt: file.modifiedAt }];
    }),
  );
}

/** The directory of static pods that kubelet's arguments and configuration name, or that its distribution always uses. */
export function manifestDir(argv: readonly string[], root: string): string | undefined {
  const config = configOf(argv, root);
  const configured = config === undefined ? undefined : settingIn(config, IN_KUBELET_CONFIG);
  const dir =
    flagOf(argv, "pod-manifest-path") ?? lastDropIn(flagOf(argv, "config-dir"), root) ?? configured ?? dirOfK3s(argv);
  return dir?.startsWith("/") === true ? dir : undefined;
}

const DROP_IN = /\.conf$/;
const MAX_DROP_INS = 20;

/** Later files of `--config-dir` override earlier ones, and the file of `--config`. */
function lastDropIn(dir: string | undefined, root: string): string | undefined {
  if (dir === undefined || provePath(root, dir).kind !== "trusted") return undefined;
  return entriesIn(resolveOnHost(root, dir, "follow"))
    .flatMap(({ name, kind }) => (kind === "file" && DROP_IN.test(name) ? [name] : []))
    .toSorted()
    .slice(0, MAX_DROP_INS)
    .flatMap((name) => settingIn(resolveOnHost(root, posix.join(dir, name), "follow"), IN_KUBELET_CONFIG) ?? [])
    .at(-1);
}

/** k3s is its own kubelet, and passes it this directory. That of rke2 is a process with arguments. */
function dirOfK3s(argv: readonly string[]): string | undefined {
  if (!/^k3s(?:-\w{1,10})?$/.test(posix.basename(argv[0] ?? ""))) return undefined;
  const data = flagOf(argv, "data-dir") ?? flagOf(argv, "d") ?? K3S_DATA;
  return posix.join(data, "agent/pod-manifests");
}

const NAME = /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/;

/** Name and namespace of the pod; undefined if the text is not plainly one pod. */
export function podIn(manifest: string): Pick<StaticManifest, "name" | "namespace"> | undefined {
  // JSON is YAML in one style; the block below `metadata` is all that is read of either.
  const [, block] = /^metadata:[ \t]*\n((?:[ \t]+\S.*\n?|[ \t]*\n)+)/m.exec(manifest) ?? [];
  const [, json] = /"metadata"\s*:\s*\{([^{}]*)/.exec(manifest) ?? [];
  if (!/^kind:[ \t]*Pod\b/m.test(manifest) && !/"kind"\s*:\s*"Pod"/.test(manifest)) return undefined;
  const name = fieldIn(block, json, "name");
  const namespace = fieldIn(block, json, "namespace") ?? "default";
  return name === undefined || !NAME.test(name) || !NAME.test(namespace) ? undefined : { name, namespace };
}

/** Only the fields of metadata itself: those of its labels and annotations are indented further. */
function fieldIn(block: string | undefined, json: string | undefined, field: string): string | undefined {
  const indent = /^([ \t]+)\S/m.exec(block ?? "")?.[1];
  const inBlock = indent === undefined ? undefined : new RegExp(`^${indent}${field}:[ \\t]*["']?([^"'#\\s]+)`, "m");
  return inBlock?.exec(block ?? "")?.[1] ?? new RegExp(`"${field}"\\s*:\\s*"([^"]+)"`).exec(json ?? "")?.[1];
}
