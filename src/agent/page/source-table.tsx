import { durationInWords } from "../../host/text.ts";
import { live } from "./live.ts";
import { nodeFacts, sourcesOf } from "./sources.ts";
import type { WireState } from "./wire.ts";
import { secondsInWords } from "./words.ts";

export function Sources({ agent }: { readonly agent: WireState }) {
  if (agent.scan === undefined) return undefined;
  return (
    <section aria-labelledby="sources">
      <h2 id="sources">Sources</h2>
      <table class="card">
        <thead class="hidden">
          <tr>
            <th scope="col">Source</th>
            <th scope="col">What was read</th>
          </tr>
        </thead>
        <tbody>
          {sourcesOf(agent.scan.report).map(({ name, health, detail, next }) => (
            <tr key={`${name} ${detail}`}>
              <th scope="row">
                {name}
                <span class={`badge ${health}`}>{health}</span>
              </th>
              <td>
                {detail}
                {next === undefined ? undefined : <p class="quiet">{next}</p>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

export function AgentFacts({ agent }: { readonly agent: WireState }) {
  const { scan, totals, breaker } = agent;
  const facts = [
    ...(scan === undefined ? [] : nodeFacts(scan.report, scan.counts)),
    { name: "Agent", value: agent.version },
    { name: "Up for", value: durationInWords((live().nodeClock - Date.parse(agent.startedAt)) / 1000) },
    { name: "Scans", value: `${totals.scans}${totals.scansFailed > 0 ? `, ${totals.scansFailed} failed` : ""}` },
    { name: "Last scan took", value: scan === undefined ? "–" : secondsInWords(scan.seconds) },
    { name: "Breaker", value: breaker.open ? "open" : "closed" },
  ];
  return (
    <section aria-labelledby="facts">
      <h2 id="facts">Node and agent</h2>
      <dl class="card facts">
        {facts.map(({ name, value }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {scan === undefined || scan.report.advice.length === 0 ? undefined : (
        <>
          <h2>Advice</h2>
          {scan.report.advice.map((advice) => (
            <p class="advice quiet" key={advice}>
              {advice}
            </p>
          ))}
        </>
      )}
    </section>
  );
}
