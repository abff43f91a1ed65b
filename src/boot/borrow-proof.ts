import { compareVersions, parseVersion, type Version } from "../evidence/versions.ts";
import { failureOf, runChild } from "../host/child.ts";
import { readMetadataFile } from "../node/metadata.ts";
import { lastSeenRuntime } from "./last-seen-runtime.ts";
import type { RuntimeFiles } from "./runtime-files.ts";

/** The 2.x sandbox store: an older containerd neither lists nor removes its records, and reports success. */
const SANDBOX_STORE_SINCE: Version = { major: 2, minor: 0, patch: 0 };

const VERSION_MS = 5000;

export interface BorrowQuery {
  readonly files: RuntimeFiles;
  readonly hostRoot: string;
  readonly stateDir: string;
  readonly signal: AbortSignal;
}

/**
 * Why a containerd must not be started with these records: it is older than the one that wrote them, or that is
 * unknown. An older one ignores unknown records and reports success. Returns undefined if it may be started.
 */
export async function objectionToBorrowing({
  files,
  hostRoot,
  stateDir,
  signal,
}: BorrowQuery): Promise<string | undefined> {
  const asked = runChild([files.binary, "--version"], { timeoutMs: VERSION_MS, signal });
  const metadata = readMetadataFile({ hostRoot, containerdRoot: files.root });
  const answer = await asked;
  const version = failureOf(answer) === undefined ? versionIn(answer.stdout) : undefined;
  // An operator who passes the program vouches for it, unless it is known to be too old.
  const mustBeKnown = files.namedBy !== "operator";
  if (version === undefined) {
    return mustBeKnown
      ? `the version of ${files.binary} is unknown (--version ${failureOf(answer) ?? "prints none"})`
      : undefined;
  }
  if (metadata.status === "failed" && mustBeKnown) {
    return `the containerd version that wrote the records is unknown: ${metadata.error.message}`;
  }
  const usesSandboxStore = metadata.status === "read" && metadata.value.sandboxes.length > 0;
  if (usesSandboxStore && compareVersions(version, SANDBOX_STORE_SINCE) < 0) {
    return `${files.binary} is containerd ${words(version)}, and the records were written by 2.0 or later (they use its sandbox store)`;
  }
  const seen = lastSeenRuntime(stateDir);
  const wrote = seen?.name === "containerd" ? parseVersion(seen.version) : undefined;
  if (wrote !== undefined && compareVersions(version, wrote) < 0) {
    return `${files.binary} is containerd ${words(version)}, and ${words(wrote)} ran on this node last`;
  }
  return undefined;
}

/** `containerd github.com/containerd/containerd v1.7.11-k3s2 <commit>` */
export function versionIn(output: string): Version | undefined {
  const [, , text] = output.trim().split(/\s+/);
  return output.startsWith("containerd ") ? parseVersion(text ?? "") : undefined;
}

function words({ major, minor, patch }: Version): string {
  return `${major}.${minor}.${patch}`;
}
