import { describeError } from "../../host/source.ts";
import { withApi } from "../../kube/cluster-credentials.ts";
import { KubeError, type KubeErrorKind, orKubeError, publishBackOff } from "../../kube/errors.ts";
import type { ClusterUse } from "../limits/timing.ts";
import type { Watched } from "../state/store.ts";
import { conditionOf } from "./condition.ts";
import { conditionPublisher, type Publisher } from "./condition-publisher.ts";
import { creationConditionOf } from "./creation-condition.ts";
import { eventRecorder } from "./event-recorder.ts";
import { ghostReportOf } from "./ghost-report.ts";
import { reportPublisher } from "./report-publisher.ts";

/** Often enough to notice that scans have stopped. */
const LONGEST_SLEEP_MS = 60_000;
const REQUEST_MS = 5000;

/**
 * Shows the agent's state to the cluster: the node's condition, its GhostReport, and events. It only listens; whatever the API does, the
 * loop that heals neither waits for it nor is affected by it.
 */
export function openKubeExporter(options: ClusterUse & { readonly watched: Watched }): { close(): Promise<void> } {
  const { watched, timing, warn } = options;
  const wanted = () => conditionOf(watched.state(), timing.clock());
  const wantedConditions = () => {
    const [ghosts, creation] = [wanted(), creationConditionOf(watched.state(), timing.clock())];
    if (ghosts === undefined || creation === undefined) return [];
    return [
      { type: "GhostSandboxes", ...ghosts },
      { type: "SandboxCreation", ...creation },
    ] as const;
  };
  const wantedReport = () => {
    const condition = wanted();
    return condition && ghostReportOf(watched.state(), condition);
  };
  const events = eventRecorder(options);
  const publishers = [
    retried("publishing the node condition", conditionPublisher(options, wantedConditions), options),
    retried("writing the GhostReport", reportPublisher(options, wantedReport), options),
    retried("writing events", events, options),
  ];
  let isOurs = false;
  let ended = false;
  let wake = new AbortController();

  /**
   * Only a scan that the API answered has proven that the cluster's node of this name is this machine. Heals during a
   * boot are published once the API server is up.
   */
  function isProven(): boolean {
    isOurs ||= watched.state().scan?.report.kubernetes.source === "api";
    return isOurs;
  }

  /** Returns how long there is nothing to do. */
  async function writeDue(): Promise<number> {
    if (!isProven()) return LONGEST_SLEEP_MS;
    try {
      for (const { dueMs, write } of publishers) if (!ended && dueMs() <= timing.clock()) await write();
      return Math.min(...publishers.map(({ dueMs }) => dueMs())) - timing.clock();
    } catch (error) {
      warn("publishing this node's state failed", describeError(error));
      return LONGEST_SLEEP_MS;
    }
  }

  async function run(): Promise<void> {
    while (!ended) {
      wake = new AbortController();
      const idleMs = await writeDue();
      await timing.sleep(Math.min(Math.max(0, idleMs), LONGEST_SLEEP_MS), wake.signal);
    }
  }

  const stopListening = [
    watched.onChange(() => wake.abort()),
    watched.onEvent((event) => {
      events.record(event);
      wake.abort();
    }),
  ];
  const running = run();
  return {
    close: async () => {
      for (const stop of stopListening) stop();
      ended = true;
      wake.abort();
      await running;
    },
  };
}

/** Writes again after an error, with a growing back-off. Logs an error when it starts or changes, and when it ends. */
function retried(doing: string, publisher: Publisher, { openCluster, timing, warn }: ClusterUse) {
  const backOff = publishBackOff(timing.random);
  let notBeforeMs = 0;
  let last: KubeErrorKind | undefined;
  return {
    dueMs: () => Math.max(notBeforeMs, publisher.dueMs()),
    write: async () => {
      const outcome = await orKubeError(withApi(openCluster, REQUEST_MS, (api) => publisher.write(api)));
      const error = outcome instanceof KubeError ? outcome : undefined;
      notBeforeMs = timing.clock() + backOff(error);
      if (error !== undefined && error.kind !== last) warn(`${doing} failed; retrying`, error.message);
      if (error === undefined && last !== undefined) warn(`${doing}: recovered`, "the API server accepts it again");
      last = error?.kind;
    },
  };
}
