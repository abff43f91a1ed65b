import { basename } from "node:path";
import type { Finding } from "../../evidence/finding.ts";
import type { Step } from "../../evidence/step.ts";
import { resolveOnHost } from "../../host/host-paths.ts";
import { property } from "../../host/json.ts";
import { readRegularFile } from "../../host/safe-fs.ts";
import { judgeResult, parseResultName } from "../../snapshot/cni-results.ts";
import { findReference, type ReferenceTools } from "../execution/prove.ts";
import { sharedCause } from "../execution/storm-brake.ts";
import { canonicalPath } from "../files/file-identity.ts";
import { addressesOfReadyPods, type ReadyAddressTools } from "../network/addresses-in-use.ts";
import { type CachedNetwork, parseCachedNetwork, replayDel } from "../network/cni-exec.ts";
import { incompleteDel } from "../network/incomplete-del.ts";
import { failed, type JournalTools, journaled, refused, type StepResult } from "./step-result.ts";

export interface ReplayDelTools extends JournalTools, ReferenceTools, ReadyAddressTools {
  readonly hostRoot: string;
  readonly binDirs: readonly string[];
  readonly waits: ReferenceTools["waits"] & ReadyAddressTools["waits"];
}

type ReplayDel = Extract<Step, { kind: "replay-del" }>;

/** They hold nothing themselves: multus' delegates have their own records, and loopback's namespace is gone. */
const HOLD_NOTHING: ReadonlySet<unknown> = new Set(["multus", "multus-shim", "loopback"]);

/**
 * Replays the DEL that never reached a plugin, from its only record. A plugin whose daemon is unreachable keeps the
 * record for a retry; one that fails permanently does not.
 */
export async function replayCachedDel(step: ReplayDel, finding: Finding, tools: ReplayDelTools): Promise<StepResult> {
  const { sandboxId } = step;
  const name = parseResultName(basename(step.path));
  const cached = cachedNetwork(step, tools);
  if (name === undefined || cached === undefined) return { kind: "unneeded" };
  if (cached.plugins.every((plugin) => HOLD_NOTHING.has(property(plugin, "type")))) return { kind: "unneeded" };
  const reference = await findReference(sandboxId, tools);
  if (reference !== undefined) return refused({ code: "still-referenced", by: reference });
  const inUse = await addressesOfReadyPods(tools);
  const taken = cached.addresses.find((address) => inUse.has(address.split("/")[0] ?? ""));
  if (taken !== undefined) return refused({ code: "address-in-use", address: taken });
  const path = canonicalPath(tools.hostRoot, step.path);
  return await journaled(tools, finding, { kind: "replay-del", path, sandboxId }, async () => {
    const place = { hostRoot: tools.hostRoot, binDirs: tools.binDirs, timeoutMs: tools.waits.queryMs };
    const failure = await replayDel(cached, sandboxId, name.interfaceName, place);
    if (failure === undefined) return { kind: "done" };
    if (sharedCause(failure) !== undefined) {
      return failed({ code: "del-undelivered", network: cached.name, failure }, failure);
    }
    const effect = incompleteDel(cached, failure, tools.hostRoot);
    return { kind: "done", detail: `DEL was refused: ${failure}`, effect };
  });
}

type Cached = CachedNetwork & { readonly addresses: readonly string[] };

function cachedNetwork({ path, sandboxId }: ReplayDel, { hostRoot }: ReplayDelTools): Cached | undefined {
  const file = readRegularFile(resolveOnHost(hostRoot, path, "keep"));
  if (file.kind !== "content") return undefined;
  const judged = judgeResult(file.text, { sandboxId });
  if (judged.health !== "ok") return undefined;
  const network = parseCachedNetwork(file.text);
  return network && { ...network, addresses: judged.addresses ?? [] };
}
