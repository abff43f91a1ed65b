import { live } from "./live.ts";
import { Ago } from "./time.tsx";
import { type Verdict, verdictOf } from "./verdict.ts";

const NOT_YET: Verdict = { tone: "unsure", headline: "Connecting", detail: "Waiting for the agent's first message." };

export function VerdictCard() {
  const { state: agent, link } = live();
  const { tone, headline, detail } = agent === undefined ? NOT_YET : verdictOf(agent);
  const isStale = link.kind === "lost" && agent !== undefined;
  return (
    <section class={`verdict ${tone}${isStale ? " stale" : ""}`} aria-labelledby="verdict">
      <div aria-live="polite" aria-atomic="true">
        <h2 id="verdict">{headline}</h2>
        <p>{detail}</p>
      </div>
      {agent?.scan === undefined ? undefined : (
        <dl class="numbers">
          <div>
            <dt>ready</dt>
            <dd>{agent.scan.report.sandboxes.ready}</dd>
          </div>
          <div>
            <dt>not ready</dt>
            <dd>{agent.scan.report.sandboxes.notReady}</dd>
          </div>
          <div>
            <dt>last look</dt>
            <dd>
              <Ago at={agent.scan.report.observedAt} />
            </dd>
          </div>
        </dl>
      )}
    </section>
  );
}
