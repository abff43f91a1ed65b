import { pendingKey, pendingLine } from "../../report/pending.ts";
import { count } from "../../report/words.ts";
import { classWords } from "./live.ts";
import { At, Command, More } from "./parts.tsx";
import type { WireReport, WireRun } from "./wire.ts";
import { listed, secondsInWords } from "./words.ts";

const RUNS_AT_ONCE = 6;
const ITEMS_AT_ONCE = 5;
const STARTED_BY = { cli: "unghost heal", agent: "the agent", boot: "the boot hook" } as const;

/** What the journal of the node has: by the agent, the command line and the boot hook. */
export function Heals({ runs }: { readonly runs: readonly WireRun[] | undefined }) {
  return (
    <section aria-labelledby="heals">
      <h2 id="heals">Last heals</h2>
      {runs === undefined || runs.length === 0 ? (
        <p class="quiet">
          {runs === undefined
            ? "Unknown: the agent has not read the journal."
            : "unghost has not changed anything on this node."}
        </p>
      ) : (
        <More items={runs} step={RUNS_AT_ONCE} name="runs">
          {(shown) => (
            <ol class="card heals">
              {shown.map((run) => (
                <Run run={run} key={run.run} />
              ))}
            </ol>
          )}
        </More>
      )}
    </section>
  );
}

type Item = WireRun["items"][number];

function Run({ run }: { readonly run: WireRun }) {
  const { at, by, seconds, items, more } = run;
  const undo = items.flatMap((item) => item.undo);
  return (
    <li>
      <span class="when">
        <At at={at} />
      </span>
      <div>
        <h3>
          {runInWords(run)}{" "}
          <span class="quiet">
            by {by === undefined ? "–" : STARTED_BY[by]}, {seconds === undefined ? "–" : secondsInWords(seconds)}
          </span>
        </h3>
        <More items={items} step={ITEMS_AT_ONCE} name="findings">
          {(shown) => (
            <ul class="done">
              {shown.map((item) => (
                <li key={item.finding}>
                  <strong>{item.subject || classWords(item.class).title}</strong>: {didInWords(item)}
                </li>
              ))}
            </ul>
          )}
        </More>
        {more > 0 ? <p class="quiet">{count(more, "more finding")}: see unghost history.</p> : undefined}
        {undo.slice(0, ITEMS_AT_ONCE).map((id) => (
          <p key={id}>
            <span class="quiet">Put its file back: </span>
            <Command line={`unghost undo ${id}`} />
          </p>
        ))}
      </div>
    </li>
  );
}

function runInWords({ items, more }: WireRun): string {
  const of = (outcome: Item["outcome"]): number => items.filter((item) => item.outcome === outcome).length;
  return listed([
    [of("done") + more, "healed"],
    ...(["failed", "refused", "interrupted", "undone"] as const).map((outcome) => [of(outcome), outcome] as const),
  ]);
}

function didInWords({ did, outcome, reason }: Item): string {
  const words = did.length === 0 ? "" : did.join(", ");
  if (outcome === "done") return words || "–";
  return [words, `${outcome}${reason === undefined ? "" : `: ${reason}`}`].filter((part) => part !== "").join("; ");
}

const AT_ONCE = 6;

export function PendingList({ report }: { readonly report: WireReport | undefined }) {
  const pending = report?.pending ?? [];
  if (report === undefined || pending.length === 0) return undefined;
  return (
    <section aria-labelledby="pending">
      <h2 id="pending">Pending ({pending.length})</h2>
      <More items={pending} step={AT_ONCE} name="pending entries">
        {(shown) => (
          <ul class="blocked">
            {shown.map((one) => (
              <li key={pendingKey(one)}>{pendingLine(one, report.observedAt)}</li>
            ))}
          </ul>
        )}
      </More>
    </section>
  );
}
