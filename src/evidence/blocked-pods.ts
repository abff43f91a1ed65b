import { type NamedPod, parseSandboxName } from "../node/types/ids.ts";
import type { PluginProcess } from "../node/types/runtime.ts";
import { callReports, isFresh } from "./reports.ts";
import type { NodeView } from "./view.ts";

/** The pod of a plugin call, from the runtime, the records or the call itself. */
export function podOfCall({ sandboxId, pod }: PluginProcess, view: NodeView): readonly NamedPod[] {
  const { sandbox, metadata } = view.about(sandboxId);
  const known = sandbox?.pod ?? parseSandboxName(metadata?.name ?? "") ?? pod;
  return known === undefined ? [] : [known];
}

/** According to the API server: pods of this node without a Ready sandbox, and pods that are being deleted. */
export function podsWaitingForNetwork(view: NodeView): readonly NamedPod[] {
  const { snapshot, sandboxes } = view;
  if (snapshot.kubernetes.source !== "api") return [];
  const noVolume = new Set(
    callReports(view).flatMap((report) =>
      report.code === "volume" && isFresh(report, view) ? [`${report.pod?.namespace}/${report.pod?.name}`] : [],
    ),
  );
  const ofUid = Map.groupBy(sandboxes, ({ pod }) => pod.uid as string);
  return snapshot.kubernetes.pods.flatMap(({ namespace, name, uid, phase, terminating }) => {
    const own = ofUid.get(uid) ?? [];
    const isReady = own.some(({ state }) => state === "ready");
    const waits =
      terminating === true ? own.length > 0 : phase === "Pending" && !isReady && !noVolume.has(`${namespace}/${name}`);
    return waits && namespace !== undefined && name !== undefined ? [{ namespace, name, uid }] : [];
  });
}

/** Each pod once, by name. */
export function distinctPods(pods: readonly NamedPod[]): readonly NamedPod[] {
  const byName = new Map<string, NamedPod>();
  for (const { namespace, name, uid } of pods) {
    const key = `${namespace}/${name}`;
    const known = byName.get(key)?.uid ?? uid;
    byName.set(key, { namespace, name, uid: known });
  }
  return [...byName].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, pod]) => pod);
}

/** As many as fit into a line; the report lists all of them. */
const MAX_NAMED = 5;

export function podsInWords(pods: readonly NamedPod[]): string {
  const more = pods.length - MAX_NAMED;
  const names = pods.slice(0, MAX_NAMED).map(({ namespace, name }) => `${namespace}/${name}`);
  const named = `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  return pods.length === 1 ? `pod ${named}` : `${pods.length} pods: ${named}`;
}
