import { describeError } from "../../heal/system-error.ts";
import type { KubeError, KubeErrorKind } from "../../kube/kube-error.ts";
import type { Watched } from "../store.ts";
import { type Condition, conditionOf } from "./condition.ts";
import { conditionPublisher, type PublisherOptions } from "./condition-publisher.ts";
import { eventRecorder } from "./event-recorder.ts";

export interface KubeFaceOptions extends PublisherOptions {
  readonly watched: Watched;
  readonly say: (message: string) => void;
}

/** Often enough to notice that nobody looks any more. */
const LONGEST_SLEEP_MS = 60_000;

/**
 * Shows the agent's state to the cluster: the node's condition, and events. It only listens; whatever the API does, the
 * loop that heals neither waits for it nor hears of it.
 */
export function openKubeFace(options: KubeFaceOptions): { close(): Promise<void> } {
  const { watched, timing, say } = options;
  const condition = conditionPublisher(options);
  const events = eventRecorder(options);
  const tellCondition = complaints("the node's condition cannot be published", say);
  const tellEvents = complaints("events cannot be written", say);
  let isOurs = false;
  let ended = false;
  let wake = new AbortController();

  /** Only a look that the API answered has proven that the cluster's node of this name is this machine. */
  function isProven(): boolean {
    isOurs ||= watched.state().scan?.report.kubernetes.source === "api";
    return isOurs;
  }

  function wanted(): Condition | undefined {
    return isProven() ? conditionOf(watched.state(), timing.clock()) : undefined;
  }

  /** What is healed while a node boots is reported once its API server is up, too. */
  function eventsDueMs(): number {
    return isProven() ? events.dueMs() : Number.POSITIVE_INFINITY;
  }

  async function write(): Promise<void> {
    const now = wanted();
    if (now !== undefined && condition.dueMs(now) <= timing.clock()) tellCondition(await condition.write(now));
    if (eventsDueMs() <= timing.clock()) tellEvents(await events.write());
  }

  /** How long there is nothing to do. */
  async function turn(): Promise<number> {
    try {
      await write();
      return Math.min(condition.dueMs(wanted()), eventsDueMs()) - timing.clock();
    } catch (error) {
      say(`showing this node's state to the cluster failed: ${describeError(error)}`);
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

/** Says what goes wrong when it begins or becomes something else, and when it is over. */
function complaints(what: string, say: (message: string) => void): (error: KubeError | undefined) => void {
  let last: KubeErrorKind | undefined;
  return (error) => {
    if (error !== undefined && error.kind !== last) say(`${what}, it is tried again: ${error.message}`);
    if (error === undefined && last !== undefined) say(`${what}: no longer so`);
    last = error?.kind;
  };
}
