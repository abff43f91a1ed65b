import { describeError } from "../../host/source.ts";
import type { KubeError, KubeErrorKind } from "../../kube/errors.ts";
import type { Watched } from "../state/store.ts";
import { type Condition, conditionOf } from "./condition.ts";
import { conditionPublisher, type PublisherOptions } from "./condition-publisher.ts";
import { eventRecorder } from "./event-recorder.ts";

export interface KubeExporterOptions extends PublisherOptions {
  readonly watched: Watched;
  readonly warn: (message: string, detail: string) => void;
}

/** Often enough to notice that scans have stopped. */
const LONGEST_SLEEP_MS = 60_000;

/**
 * Shows the agent's state to the cluster: the node's condition, and events. It only listens; whatever the API does, the
 * loop that heals neither waits for it nor is affected by it.
 */
export function openKubeExporter(options: KubeExporterOptions): { close(): Promise<void> } {
  const { watched, timing, warn } = options;
  const condition = conditionPublisher(options);
  const events = eventRecorder(options);
  const reportCondition = changesOf("publishing the node condition", warn);
  const reportEvents = changesOf("writing events", warn);
  let isOurs = false;
  let ended = false;
  let wake = new AbortController();

  /** Only a scan that the API answered has proven that the cluster's node of this name is this machine. */
  function isProven(): boolean {
    isOurs ||= watched.state().scan?.report.kubernetes.source === "api";
    return isOurs;
  }

  function wanted(): Condition | undefined {
    return isProven() ? conditionOf(watched.state(), timing.clock()) : undefined;
  }

  /** Heals during a boot are published once the API server is up. */
  function eventsDueMs(): number {
    return isProven() ? events.dueMs() : Number.POSITIVE_INFINITY;
  }

  async function write(): Promise<void> {
    const now = wanted();
    if (now !== undefined && condition.dueMs(now) <= timing.clock()) reportCondition(await condition.write(now));
    if (eventsDueMs() <= timing.clock()) reportEvents(await events.write());
  }

  /** Returns how long there is nothing to do. */
  async function turn(): Promise<number> {
    try {
      await write();
      return Math.min(condition.dueMs(wanted()), eventsDueMs()) - timing.clock();
    } catch (error) {
      warn("publishing this node's state failed", describeError(error));
      return LONGEST_SLEEP_MS;
    }
  }

  async function run(): Promise<void> {
    while (!ended) {
      wake = new AbortController();
      const idleMs = await turn();
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

/** Logs an error when it starts or changes, and when it ends. */
function changesOf(doing: string, warn: KubeExporterOptions["warn"]): (error: KubeError | undefined) => void {
  let last: KubeErrorKind | undefined;
  return (error) => {
    if (error !== undefined && error.kind !== last) warn(`${doing} failed; retrying`, error.message);
    if (error === undefined && last !== undefined) warn(`${doing}: recovered`, "the API server accepts it again");
    last = error?.kind;
  };
}
