import type { Logger } from "pino";
import { classById } from "../classes/index.ts";
import { type ObserveNodeOptions, observeNode } from "../diagnose/observe-node.ts";
import type { DiagnosisPolicy } from "../evidence/view.ts";
import { earlierFailures } from "../heal/journal/earlier-failures.ts";
import { unfinishedRemovals } from "../heal/journal/unsettled.ts";
import { run } from "../heal/pipeline.ts";
import { DEFAULT_WAITS, type Interruption } from "../heal/proof/fresh-facts.ts";
import { type SessionOptions, settleEarlierRuns } from "../heal/session.ts";
import { describeError } from "../host/source.ts";
import { shellWord } from "../host/text.ts";
import { findNodeRuntime } from "../node/runtime-process.ts";
import type { HealPolicy } from "../plan/policy.ts";
import { type ScanOptions, scanNode } from "../plan/scan.ts";
import { commandPlace } from "../report/command-place.ts";
import { openAttempts, stampNow } from "./attempts-file.ts";
import { clusterSide } from "./cluster-side.ts";
import { openCycle } from "./cycle.ts";
import { keepCniFilesDurable } from "./durable-cni-files.ts";
import { type ExportersOptions, openExporters } from "./exporters.ts";
import { isOpenToNetwork } from "./http/listen-address.ts";
import { publishRuns } from "./journal-runs.ts";
import { openPace, type Pace } from "./pace.ts";
import type { AgentPolicy, ClassMode } from "./policy/agent-policy.ts";
import { keepQuarantineRetention } from "./quarantine-retention.ts";
import type { Store } from "./state/store.ts";
import { keepTimeline } from "./state/timeline.ts";
import { afterFailedScan, apply } from "./state-changes.ts";
import { type Hint, openTriggers } from "./triggers/triggers.ts";

/**
 * The agent does not wait for kubelet, except for a CSI driver's socket before pods are restarted: the following stop
 * is the call that kubelet would repeat within seconds, and the rest of the node would wait meanwhile.
 */
const WAITS = { ...DEFAULT_WAITS, kubeletMs: 0 };

interface AgentOptions {
  readonly store: Store;
  readonly log: Logger;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly observe: ObserveNodeOptions;
  readonly diagnosis: DiagnosisPolicy;
  /** The effective policy: it may change between two scans, which the event `config` announces. */
  readonly policy: () => AgentPolicy;
  readonly session: Omit<SessionOptions, "lockWaitMs">;
  readonly concurrency: number;
  readonly exporters: Pick<ExportersOptions, "listen" | "tls" | "tokenFile" | "textfile">;
  readonly interruption: Interruption;
}

const OPEN_NEXT = "Set agent.tokenFile (--token-file), or listen on 127.0.0.1.";

/** One late scan may still be running; two late scans mean that it is not. */
const SCANS_TO_BE_READY = 2.5;

/** Runs until it is interrupted. Errors are logged, and the agent continues. */
export async function runAgent(options: AgentOptions): Promise<void> {
  const { store, log, interruption, session, env } = options;
  const place = commandPlace(env).map(shellWord).join(" ");
  if (place !== "") store.update((state) => ({ ...state, commandPlace: place }));
  const warn = (message: string, detail: string): void => log.warn({ detail }, message);
  const pace = openPace({ scanEveryMs: options.policy().scanEveryMs, random: Math.random });
  const onHint = ({ from, urgency }: Hint): void => {
    log.debug({ from }, "hint");
    pace.hint(urgency);
  };
  // First, because pods may be created from now on.
  const durable = keepCniFilesDurable({ ...options.observe, store, log, isWanted: () => options.policy().keepDurable });
  const unfinished = await finishEarlierRuns(options);
  const attempts = openAttempts({
    ...session,
    stamp: () => stampNow(session.hostRoot),
    onProblem: (problem, failed) =>
      log.warn({ problem }, `${failed === "read" ? "reading" : "saving"} attempts failed`),
  });
  const cluster = clusterSide({
    ...options.observe,
    store,
    places: options.observe.noKube ? undefined : { ...options.observe, root: options.observe.hostRoot, env },
    policy: options.policy,
    warn,
    onChange: () => onHint({ from: "cluster", urgency: "soon" }),
    answer: async (spec) => {
      const { answerRequest } = await import("./requests/answer.ts");
      log.info({ request: spec }, "asked to heal");
      return await answerRequest(spec, { cycle, policy: options.policy, ownPodUid: env["POD_UID"] });
    },
  });
  const triggers = openTriggers({
    ...options.observe,
    findSocket: () => findSocket(options.observe, env),
    onHint,
    onDaemonBack: (what) => {
      log.info({ what }, "what network calls wait for is back");
      attempts.book.causeEnded(performance.now());
    },
    warn,
    onLost: (error) => log.error({ reason: describeError(error) }, "trigger stopped"),
  });
  const pipeline: ScanOptions = {
    observe: async () => {
      const mirror = await cluster.mirror();
      const snapshot = await observeNode({ ...options.observe, ...(mirror && { mirror }) }, env);
      triggers.saw(snapshot);
      durable.saw(snapshot);
      cluster.saw(snapshot);
      return snapshot;
    },
    policy: () => ({ ...healPolicyOf(options.policy(), options.diagnosis), unfinished }),
  };
  const cycle = openCycle({
    store,
    policy: options.policy,
    attempts: attempts.book,
    scan: () => scanNode(pipeline),
    heal: (shown, { narrow, sinks }) =>
      run(shown, {
        ...pipeline,
        narrow,
        sinks: { ...sinks, warning: (warning) => log.warn({ warning }, "journal warning") },
        // Does not wait for the lock: the loop retries.
        session: { ...options.session, lockWaitMs: 0 },
        concurrency: options.concurrency,
        cniCacheDir: options.observe.cniCacheDir,
        waits: WAITS,
        cluster: cluster.open,
        interruption: options.interruption,
      }),
    gate: (actions) => cluster.gate(actions),
    failures: async () => {
      try {
        return await earlierFailures(session.stateDir, session.uid);
      } catch (thrown) {
        log.warn({ reason: describeError(thrown) }, "reading the journal failed");
        return new Map();
      }
    },
    ownPodUid: env["POD_UID"],
    onDue: (atMs) => pace.dueAt(atMs),
    onLost: (error) => log.error({ reason: describeError(error) }, "healing ended unexpectedly"),
  });
  const stopListening = store.onEvent(({ kind }) => {
    if (kind !== "config") return;
    pace.scanEvery(options.policy().scanEveryMs);
    pace.hint("now");
  });
  const readyWithinMs = (): number => SCANS_TO_BE_READY * options.policy().scanEveryMs + options.observe.timeoutMs;
  const exporters = openExporters({
    ...options.exporters,
    store,
    readyWithinMs,
    onListening: (address) => {
      log.info({ address }, "listening");
      if (!isOpenToNetwork(options.exporters.listen, options.exporters.tokenFile)) return;
      log.warn({ address, next: OPEN_NEXT }, "listening on the network without a token");
      store.update((state) => ({ ...state, openAddress: address }));
    },
    warn,
  });
  const timeline = keepTimeline(store, session, (problem) => log.warn({ problem }, "saving the timeline failed"));
  const stopPublishing = publishRuns(store, session.stateDir, (error) =>
    log.warn({ reason: describeError(error) }, "reading the journal failed"),
  );
  const retention = keepQuarantineRetention({ ...options, session });
  try {
    await runLoop({ pace, store, cycle: () => cycle.run(), stop: interruption.stop });
    await cycle.idle();
  } finally {
    stopListening();
    stopPublishing();
    triggers.close();
    durable.close();
    await Promise.all([attempts.close(), timeline.close(), exporters.close(), cluster.close(), retention.close()]);
  }
}

/** Recovers interrupted runs from the journal before the first scan, and returns the ids that they were removing. */
async function finishEarlierRuns({ session, log }: AgentOptions): Promise<ReadonlySet<string>> {
  try {
    const settled = await settleEarlierRuns({ ...session, lockWaitMs: 0 });
    if (!settled.ok) log.warn({ reason: settled.refusal.message }, "recovery of earlier runs postponed");
    else if (settled.value.length > 0) log.info({ recoveries: settled.value }, "earlier runs recovered");
    return await unfinishedRemovals(session.stateDir, session.uid);
  } catch (thrown) {
    // The next heal gets the same error, and shows it until it is repaired.
    log.error({ reason: describeError(thrown) }, "reading the journal failed");
    return new Set();
  }
}

async function findSocket(where: ObserveNodeOptions, env: AgentOptions["env"]): Promise<string | undefined> {
  const { runtimeEndpoint: endpoint, hostRoot, timeoutMs } = where;
  const found = await findNodeRuntime({ endpoint, env, hostRoot, timeoutMs });
  return found.kind === "found" ? found.path : undefined;
}

/**
 * Second scan after 2 s: the cause of the hint is often still in flight during the first one, for example a network
 * teardown or a stop that fails late.
 */
const SECOND_SCAN_MS = 2000;

interface LoopOptions {
  readonly pace: Pace;
  readonly store: Store;
  readonly cycle: () => Promise<void>;
  /** Starts no further scan. */
  readonly stop: AbortSignal;
}

/**
 * Scans whenever a scan is due, until it is stopped. An exception of a scan is logged and counted, and the next scan
 * waits.
 */
export async function runLoop({ pace, store, cycle, stop }: LoopOptions): Promise<void> {
  for (;;) {
    const { hinted } = await pace.wait(stop);
    if (stop.aborted) return;
    const before = process.cpuUsage();
    try {
      await cycle();
      const { user, system } = process.cpuUsage(before);
      pace.scanned((user + system) / 1000);
      if (hinted) pace.dueAt(performance.now() + SECOND_SCAN_MS);
    } catch (thrown) {
      pace.failed();
      apply(store, afterFailedScan(store.state(), describeError(thrown), new Date()));
    }
  }
}

/**
 * The agent's policy for diagnosis and plan. There is no cap here: the ledger caps what it lets run, so that given-up
 * findings do not use up the cap.
 */
export function healPolicyOf({ classes, recreatePods }: AgentPolicy, asked: DiagnosisPolicy): HealPolicy {
  const inMode = (wanted: ClassMode): readonly string[] =>
    [...classes].filter(([, { mode }]) => mode === wanted).map(([id]) => id);
  function isConsented(id: string): boolean {
    const failureClass = classById(id);
    if (failureClass?.deletesPodWithConsent === true) return recreatePods;
    return failureClass?.treatment.mode === "attended";
  }
  return {
    ...asked,
    skip: [...asked.skip, ...inMode("off")],
    allDead: false,
    cap: Number.POSITIVE_INFINITY,
    consented: new Set(inMode("heal").filter(isConsented)),
  };
}
