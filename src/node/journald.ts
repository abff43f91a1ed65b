import { failureOf, runChild } from "../host/child.ts";
import { existsSync } from "../host/guarded-fs.ts";
import { resolveOnHost } from "../host/paths.ts";
import { parseJson, property } from "../host/text.ts";

const LINES = 5000;
const MAX_BYTES = 16 * 1024 * 1024;

/** For callers without a shorter timeout. */
const LONGEST_MS = 60_000;

/** On disk, or only in memory. */
const PLACES = ["/var/log/journal", "/run/log/journal"] as const;

/** The journal directory of a node that is mounted at `root`. */
export function journaldDirectory(root: string): string | undefined {
  return PLACES.map((path) => resolveOnHost(root, path, "follow")).find((path) => existsSync(path));
}

/** The newest lines of some units of this boot that the services themselves wrote. */
export async function readJournald(
  root: string,
  units: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly lines: readonly string[] } | { readonly reason: string }> {
  const directory = root === "/" ? undefined : journaldDirectory(root);
  if (root !== "/" && directory === undefined) return { reason: `its files are not to be seen below ${root}` };
  const where = directory === undefined ? [] : ["--directory", directory];
  const what = ["--output=json", "--output-fields=MESSAGE,_COMM,_UID", `--lines=${LINES}`];
  const args = [...where, "--boot", "--no-pager", "--quiet", ...what, ...units.flatMap((unit) => ["--unit", unit])];
  const result = await runChild(["journalctl", ...args], { maxOutputBytes: MAX_BYTES, timeoutMs: LONGEST_MS, signal });
  const failure = failureOf(result);
  if (failure === undefined) return { lines: result.stdout.split("\n").flatMap(ownMessageIn) };
  const [complaint = ""] = result.stderr.trim().split("\n");
  return { reason: `journalctl ${failure}${complaint === "" ? "" : `: ${complaint}`}` };
}

/** Programs whose lines count; NixOS wraps them as `.kubelet-wrapped`. */
const SERVICE = /^\.?(?:containerd(?!-shim)|kubelet|kubelite|k3s|rke2|k0s|crio|dockerd|cri-dockerd|hyperkube)/;

/**
 * A unit's journal also contains lines of its other processes: network plugins, which print the content of pods'
 * annotations, and shims. journald records the writer of each entry in fields that only journald sets.
 */
function ownMessageIn(line: string): readonly string[] {
  const entry = parseJson(line);
  const writer = property(entry, "_COMM");
  if (property(entry, "_UID") !== "0" || typeof writer !== "string" || !SERVICE.test(writer)) return [];
  const message = property(entry, "MESSAGE");
  if (typeof message === "string") return [message];
  // Text with bytes that are not UTF-8, or control characters.
  return Array.isArray(message) ? [Buffer.from(message).toString()] : [];
}
