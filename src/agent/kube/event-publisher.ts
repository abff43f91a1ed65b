import { withApi } from "../../fleet/with-api.ts";
import type { Api } from "../../kube/api.ts";
import { KubeError, orKubeError } from "../../kube/kube-error.ts";
import type { AgentEvent } from "../state.ts";
import { backOffMs } from "./back-off.ts";
import type { PublisherOptions } from "./condition-publisher.ts";
import { type Entry, eventBook } from "./event-book.ts";
import { draftsOf } from "./event-drafts.ts";
import { writeEvent } from "./event-writer.ts";
import { type News, newsOf } from "./news.ts";

/** Tells the cluster what happens here: soon, in few words, and never in a flood. */
export interface EventPublisher {
  tell(event: AgentEvent): void;
  /** When there is something to do, by the clock. */
  dueMs(): number;
  write(): Promise<KubeError | undefined>;
}

/** What happens within this time is one story. */
const GATHER_MS = 2000;
const REQUEST_MS = 5000;
/** Writes that one node makes in an hour at most, and at once after a quiet hour. */
const BUDGET = 60;
const HOUR_MS = 60 * 60_000;
/** With less than this left, pods have no events of their own. */
const SPARE = 15;

export function eventPublisher({ openCluster, nodeName, timing }: PublisherOptions): EventPublisher {
  const { clock, now, random } = timing;
  const book = eventBook(clock);
  let gathered: News[] = [];
  let gatheredSinceMs = 0;
  /** When it happened: an API that is down may be told of it much later. */
  let happenedAt = now();
  let budget = { left: BUDGET, atMs: clock() };
  let failures = 0;
  let notBeforeMs = 0;

  function budgetNow(): number {
    return Math.min(BUDGET, budget.left + ((clock() - budget.atMs) / HOUR_MS) * BUDGET);
  }

  function settle(): void {
    if (gathered.length === 0 || clock() < gatheredSinceMs + GATHER_MS) return;
    for (const draft of draftsOf(gathered, budgetNow() >= SPARE)) book.add(draft, nodeName(), happenedAt);
    gathered = [];
  }

  function dueMs(): number {
    const gatheredMs = gathered.length === 0 ? Number.POSITIVE_INFINITY : gatheredSinceMs + GATHER_MS;
    const [first] = book.open();
    const affordableMs = clock() + Math.max(0, 1 - budgetNow()) * (HOUR_MS / BUDGET);
    const entryMs = first === undefined ? Number.POSITIVE_INFINITY : Math.max(book.dueMs(first), affordableMs);
    return Math.max(notBeforeMs, Math.min(gatheredMs, entryMs));
  }

  /** A pod's namespace may be gone or going, and nobody then waits for its events; the node's own is always there. */
  async function writeOne(api: Api, entry: Entry): Promise<void> {
    budget = { left: budgetNow() - 1, atMs: clock() };
    const outcome = await orKubeError(writeEvent(api, entry, nodeName()));
    if (!(outcome instanceof KubeError)) return book.written(entry, outcome.count, outcome.firstAt);
    if (entry.draft.pod === undefined || (outcome.kind !== "not-found" && outcome.kind !== "forbidden")) throw outcome;
    book.forget(entry);
  }

  async function writeDue(): Promise<void> {
    const due = book.open().filter((entry) => book.dueMs(entry) <= clock());
    if (due.length === 0) return;
    await withApi(openCluster, REQUEST_MS, async (api) => {
      for (const entry of due) {
        if (budgetNow() < 1) return;
        await writeOne(api, entry);
      }
    });
  }

  return {
    tell: (event) => {
      const news = newsOf(event);
      if (news === undefined) return;
      settle();
      if (gathered.length === 0) {
        gatheredSinceMs = clock();
        happenedAt = now();
      }
      gathered.push(news);
    },
    dueMs,
    write: async () => {
      settle();
      const outcome = await orKubeError(writeDue());
      failures = outcome instanceof KubeError ? failures + 1 : 0;
      notBeforeMs = outcome instanceof KubeError ? clock() + backOffMs(outcome, failures, random) : 0;
      return outcome instanceof KubeError ? outcome : undefined;
    },
  };
}
