import type { Logger } from "pino";
import type { ObserveNodeOptions } from "../diagnose/observe-node.ts";
import { openKeeper } from "../durable/keeper.ts";
import {
  describeKeeper,
  describeProblem,
  isSerious,
  type KeeperProblem,
  publishKeeper,
} from "../durable/keeper-state.ts";
import { pluginRoots } from "../durable/kept-directories.ts";
import { describeError, valueOr } from "../host/source.ts";
import type { Snapshot } from "../node/types/snapshot.ts";
import type { Store } from "./state/store.ts";

interface DurableOptions extends Pick<ObserveNodeOptions, "hostRoot" | "cniCacheDir" | "multusDir"> {
  readonly store: Store;
  readonly log: Logger;
  /** The active one: it may change while the agent runs. */
  readonly isWanted: () => boolean;
}

/** The minimum interval of state updates, however many files are written. */
const PUBLISH_MS = 1000;

/** Runs the keeper beside the scans, independent of them. */
export function keepCniFilesDurable(options: DurableOptions) {
  const { store, log } = options;
  let confDir: string | undefined;
  let keeper: { close(): void } | undefined;
  let filesSynced = 0;
  let publishing: NodeJS.Timeout | undefined;

  function publish(): void {
    publishing = undefined;
    store.update((state) => ({ ...state, totals: { ...state.totals, cniFilesSynced: filesSynced } }));
  }

  function open(): { close(): void } {
    const opened = openKeeper({
      roots: pluginRoots({ ...options, confDir: () => confDir }),
      onSynced: (seconds) => {
        filesSynced += seconds.length;
        log.debug({ files: seconds.length, slowestSeconds: Math.max(...seconds) }, "CNI files synced");
        store.publish({ kind: "cni-files-synced", seconds });
        publishing ??= setTimeout(publish, PUBLISH_MS).unref();
      },
      onProblems: (problems) => logKeeperProblems(problems, log),
      onLost: (error) => log.error({ reason: describeError(error) }, "CNI files are not kept durable any more"),
    });
    opened.started.then(
      () => log.info({ keeper: describeKeeper(opened.state()) }, "CNI files are kept durable"),
      // onLost reports it.
      () => undefined,
    );
    const published = publishKeeper(options.hostRoot, opened);
    return {
      close: () => {
        published.close();
        opened.close();
      },
    };
  }

  function follow(): void {
    const isWanted = options.isWanted();
    if (isWanted === (keeper !== undefined)) return;
    keeper?.close();
    keeper = isWanted ? open() : undefined;
    if (!isWanted) log.info("CNI files are not kept durable (agent.keepDurable)");
  }

  follow();
  const stopListening = store.onEvent(({ kind }) => {
    if (kind === "config") follow();
  });
  return {
    /** The runtime may read its networks from another directory. */
    saw: ({ cri }: Pick<Snapshot, "cri">): void => {
      confDir = valueOr(cri, undefined)?.cniDirs?.conf ?? confDir;
    },
    close: (): void => {
      stopListening();
      clearTimeout(publishing);
      keeper?.close();
    },
  };
}

export function logKeeperProblems(problems: readonly KeeperProblem[], log: Logger): void {
  const fields = { problems: problems.map(describeProblem) };
  if (problems.length === 0) log.info("CNI files are kept durable again");
  else if (problems.some(isSerious)) log.warn(fields, "CNI files are not all kept durable");
  else log.info(fields, "CNI files are kept durable with a delay");
}
