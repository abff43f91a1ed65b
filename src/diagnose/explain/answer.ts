import { couldConcernSandboxes } from "../../classes/index.ts";
import { innermostCause } from "../../logs/answer.ts";
import { type Operation, operationIn } from "../../logs/operation.ts";
import { type Callee, calleeOf, type Subject, subjectOf } from "../../logs/subject.ts";
import { isCut, normalise } from "../../logs/text.ts";
import { depth, type Match, type Recognition, recogniseLevel } from "./recognise.ts";
import { type Topic, topicIn } from "./topics.ts";

/** What one log record means: classes of the catalogue, else a trouble known elsewhere and the operation that failed. */
export interface Answer {
  /** Empty without a class. */
  readonly matches: readonly Match[];
  readonly topic?: Topic;
  readonly failure?: Failure;
  /** How much was found: of several ways to join physical lines the one with the highest weight is right. */
  readonly weight: number;
}

/** An operation of kubelet, the runtime, a plugin or a driver that failed for a cause that no class has. */
export interface Failure extends Subject, Callee {
  readonly operation: Operation;
  /** The innermost cause, in its writer's words; absent if the text does not contain it. */
  readonly cause?: string;
  /** The text ends before its end: a pager, an event's limit or a column cut it. */
  readonly isCut: boolean;
  /** The original line. */
  readonly line: string;
}

const NOTHING: Answer = { matches: [], weight: 0 };

/** Longer records have their operation at the start. */
const MAX_CHARACTERS = 16_384;

/**
 * A flood repeats a few lines with other ids, names and times: what such a line means is found once. Only what the
 * line is about is read from each.
 */
const VARIABLE_PARTS =
  /\d\d:\d\d:\d\d[.,\d]*|(?=\d{0,16}[a-f])[0-9a-f]{8,}(?:-[0-9a-f]{4,})*|(?<=[a-z][-_])\d{1,18}(?!\d)/g;
const LONGEST_CACHED = 4_096;
const MAX_CACHED = 2_000;
const answers = new Map<string, Answer>();

export function answerTo(line: string): Answer {
  if (line.length > LONGEST_CACHED) return freshAnswerTo(line);
  if (!couldConcernSandboxes(line) && !PERHAPS.test(line)) return NOTHING;
  const shape = line.replace(VARIABLE_PARTS, "0");
  const known = answers.get(shape);
  if (known !== undefined) return known.weight === 0 ? NOTHING : aboutLine(known, line);
  const answer = freshAnswerTo(line);
  if (answers.size >= MAX_CACHED) answers.clear();
  answers.set(shape, answer);
  return answer;
}

function aboutLine({ matches, failure, ...answer }: Answer, line: string): Answer {
  const text = normalise(line);
  const subject = subjectOf(text);
  return {
    ...answer,
    matches: matches.map((match) => ({ ...match, ...subject, line })),
    failure: failure === undefined ? undefined : { ...failure, ...subject, ...calleeOf(text), line },
  };
}

function freshAnswerTo(line: string): Answer {
  const recognition = couldConcernSandboxes(line) ? recogniseLevel(line) : undefined;
  if (recognition?.level === undefined && !PERHAPS.test(line)) return NOTHING;
  if (recognition?.level === "cause") return { matches: recognition.matches, weight: weightOf(recognition) };
  const text = normalise(line.slice(0, MAX_CHARACTERS));
  const operation = operationIn(text);
  const topic = topicIn(text, operation);
  if (topic === undefined && recognition?.level !== undefined) {
    return { matches: recognition.matches, weight: weightOf(recognition) };
  }
  const failure = topic?.isOrdinary === true ? undefined : failureIn(line, text, operation);
  if (topic !== undefined) return { matches: [], topic, failure, weight: 3 };
  if (failure === undefined) return NOTHING;
  return { matches: [], failure, weight: failure.cause === undefined ? 1 : 2 };
}

function failureIn(line: string, text: string, operation: Operation | undefined): Failure | undefined {
  if (operation === undefined) return undefined;
  const cause = innermostCause(line.slice(0, MAX_CHARACTERS));
  return { operation, ...subjectOf(text), ...calleeOf(text), cause, isCut: isCut(line), line };
}

function weightOf({ level }: Recognition): number {
  return 3 + depth(level);
}

/** Every line with an answer contains one of these words: the other lines of a large log cost one search. */
const PERHAPS =
  /fail|error|err=|unable|cannot|could not|couldn|refus|denied|invalid|exceeded|insufficient|not found|no such|timed out|timeout|back-?off|exhausted|killed|oom|evict|unhealthy|taint|available|quota|webhook|x509|panic|fatal|busy|stale|blocked|netdevice|_net|reserved|orphan|conflict|not ready|not healthy|notready|not initialized|networkready|is down|not yet|swap|cgroup|curl: |root root|years ago|dnat name|createdat|larger than|too many|already|mismatch|warning|forbidden|no matches|stopped posting|no running task|violate|pleg (?:is|was|has) |must be logged|pressure|unbound|pending|containercreating|terminating|table full|bridge-nf|runasnonroot|exit code|modified|invalid capacity|waiting to start|still running|must be stopped|progress deadline|backoff limit|resolve|no servers|did not kill/i;
