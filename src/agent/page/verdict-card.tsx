import { blockedPods } from "./groups.ts";
import { live } from "./live.ts";
import { Ago } from "./time.tsx";
import { pageVerdict, type Verdict } from "./verdict.ts";

const NOT_YET: Verdict = { tone: "unsure", headline: "Connecting", detail: "Waiting for the agent's first message." };

export function VerdictCard() {
  const { state: agent, link } = live();
  const { tone, headline, detail } = agent === undefined ? NOT_YET : pageVerdict(agent);
  const report = agent?.scan?.report;
  // A runtime that does not answer has no sandboxes to count.
  const known = report?.runtime.reachable === true ? report : undefined;
  const isStale = link.kind === "lost" && agent !== undefined;
  return (
    <section class={`verdict ${tone}${isStale ? " stale" : ""}`} aria-labelledby="verdict">
      <div aria-live="polite" aria-atomic="true">
        <h2 id="verdict">{headline}</h2>
        <p>{detail}</p>
      </div>
      <dl class="numbers">
        <div>
          <dt>ready</dt>
          <dd>{known?.sandboxes.ready ?? "–"}</dd>
        </div>
        <div>
          <dt>not ready</dt>
          <dd>{known?.sandboxes.notReady ?? "–"}</dd>
        </div>
        <div>
          <dt>pods blocked</dt>
          <dd>{known === undefined ? "–" : blockedPods(agent?.sightings ?? [])}</dd>
        </div>
        <div>
          <dt>last scan</dt>
          <dd>{report === undefined ? "–" : <Ago at={report.observedAt} />}</dd>
        </div>
      </dl>
    </section>
  );
}
