import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type ObserveNodeOptions, observeNode } from "../diagnose/observe-node.ts";
import { writeDurably } from "../heal/files/durable-files.ts";
import { valueOr } from "../host/source.ts";
import { noteRuntime } from "./last-seen-runtime.ts";

/** Exists in the state directory after an orderly shutdown. */
export const CLEAN_SHUTDOWN = "clean-shutdown";

export const ATTACHMENTS = "attachments.json";

/**
 * Records, with fsync, which sandboxes had their network set up: libcni does not sync, so its files may be empty after
 * a power cut, and this records which of them were complete.
 */
export async function recordAttachments(
  stateDir: string,
  options: ObserveNodeOptions,
  isShutdown: boolean,
): Promise<number> {
  const snapshot = await observeNode(options, process.env);
  const sandboxes = valueOr(snapshot.cri, undefined)?.sandboxes ?? [];
  const results = valueOr(snapshot.cni.results, []).filter(({ health }) => health === "ok");
  const attachments = results.map(({ network, sandboxId, interfaceName }) => ({
    network,
    sandboxId,
    interfaceName,
    pod: sandboxes.find(({ id }) => id === sandboxId)?.pod,
  }));
  const document = {
    apiVersion: "unghost.dev/v1",
    kind: "Attachments",
    node: snapshot.node,
    at: snapshot.observedAt.toISOString(),
    boot: valueOr(snapshot.boot, undefined)?.id ?? "",
    attachments,
  };
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  await writeDurably(join(stateDir, ATTACHMENTS), `${JSON.stringify(document, undefined, 2)}\n`);
  await noteRuntime(stateDir, snapshot.runtime);
  if (isShutdown) await writeDurably(join(stateDir, CLEAN_SHUTDOWN), `${document.boot}\n`);
  return attachments.length;
}
