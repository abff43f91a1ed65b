import { type Logger, pino } from "pino";
import { podWords } from "../report/pending.ts";
import { degradedMessage } from "./kube/condition.ts";
import type { AgentEvent, HealRecord, Sighting } from "./state/state.ts";
import type { Watched } from "./state/store.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** Of sd-daemon(3): journald takes the number from the beginning of a line as its priority, and removes it. */
const PRIORITIES: Readonly<Record<string, number>> = { debug: 7, info: 6, warn: 4, error: 3 };

function withPriority(line: string): string {
  const [, level = "info"] = /^\{"level":"(\w+)"/.exec(line) ?? [];
  return `<${PRIORITIES[level] ?? PRIORITIES["info"]}>${line}`;
}

/** JSON lines, written synchronously, so that a killed agent loses none; `toJournald`: each with its priority. */
export function openLog(level: LogLevel, write: (line: string) => void, toJournald = false): Logger {
  const formatters = { level: (label: string) => ({ level: label }) };
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters };
  const writeIfPossible = (line: string): void => {
    try {
      write(toJournald ? withPriority(line) : line);
    } catch {
      // The log's disk is full, and there is no other place to report it: healing continues.
    }
  };
  return pino(options, { write: writeIfPossible });
}

/** Limits the lines of one kind per minute, for a node with thousands of ghosts; the rest is counted. */
const MAX_LINES = 50;
const PERIOD_MS = 60_000;
/** Logged completely at debug level. */
const FREQUENT: ReadonlySet<AgentEvent["kind"]> = new Set(["scanned", "cni-files-synced"]);

/** Logs the agent's events: one line for each change, limited per kind and minute. */
export function logEvents(store: Pick<Watched, "onEvent">, log: Logger): () => void {
  const kinds = new Map<AgentEvent["kind"], { sinceMs: number; lines: number; left: number }>();

  return store.onEvent((event) => {
    const now = performance.now();
    const kind = kinds.get(event.kind) ?? { sinceMs: now, lines: 0, left: 0 };
    kinds.set(event.kind, kind);
    if (now - kind.sinceMs >= PERIOD_MS) {
      if (kind.left > 0) log.warn({ event: event.kind, count: kind.left }, "log lines suppressed");
      Object.assign(kind, { sinceMs: now, lines: 0, left: 0 });
    }
    if (!FREQUENT.has(event.kind) && kind.lines >= MAX_LINES) kind.left++;
    else {
      kind.lines++;
      logEvent(event, log);
    }
  });
}

function logEvent(event: AgentEvent, log: Logger): void {
  switch (event.kind) {
    case "scanned":
      return log.debug({ seconds: event.seconds }, "scanned");
    case "scan-failed":
      return log.error({ reason: event.reason }, "scan failed");
    case "verdict": {
      const { from, to, problem, next } = event;
      return log.warn({ from, to, problem, next }, "verdict changed");
    }
    case "detected":
      return log.warn(about(event.sighting), "ghost detected");
    case "gone":
      return log.info(about(event.sighting), "ghost recovered");
    case "degraded":
      return log.warn({ reason: degradedMessage(event.report) }, "pods blocked; no ghost found yet");
    case "healed":
      return log.info(healed(event.record), "ghost healed");
    case "heal-failed":
      return log.warn(healed(event.record), "healing failed");
    case "refused": {
      const { reason, message, sighting } = event;
      return log.info({ reason, message, ...(sighting && about(sighting)) }, "not healed");
    }
    case "given-up": {
      const { standing } = event.sighting;
      const why = standing.kind === "given-up" ? { message: standing.message, next: standing.next } : {};
      return log.error({ ...about(event.sighting), ...why }, "healing given up; manual steps required");
    }
    case "cni-files-synced":
      return log.debug({ files: event.seconds.length }, "CNI files synced");
    case "breaker":
      return log.warn({ ...event.breaker }, event.breaker.open ? "breaker opened" : "breaker closed");
    case "config":
      if (event.problem === undefined) return log.info("configuration applied");
      return log.error({ problem: event.problem }, "new configuration rejected; the previous one stays active");
  }
}

function about({ finding }: Sighting): object {
  const { id, class: classId, summary, subject } = finding;
  return { class: classId, finding: id, summary, pod: subject.pod && podWords(subject.pod) };
}

function healed({ finding, class: classId, outcome, reason, journalId, seconds, pod }: HealRecord): object {
  return { class: classId, finding, outcome, reason, journalId, seconds, pod: pod && podWords(pod) };
}
