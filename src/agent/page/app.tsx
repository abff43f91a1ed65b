import { durationInWords } from "../../host/text.ts";
import { Blocked, Findings } from "./findings.tsx";
import { blockedPods } from "./groups.ts";
import { Heals, PendingList } from "./heals.tsx";
import { live } from "./live.ts";
import { Ago, Definitions } from "./parts.tsx";
import { nodeFacts, sourcesOf } from "./sources.ts";
import { Timeline } from "./timeline-section.tsx";
import { Header, NoticeList, VerdictBox } from "./top.tsx";
import { noticesOf, pageVerdict, type Verdict } from "./verdict.ts";
import type { WireState } from "./wire.ts";
import { secondsInWords } from "./words.ts";

/** What scripts/build-page.ts puts in: the page is of one version. */
declare const UNGHOST_VERSION: string;

export const PAGE_VERSION = UNGHOST_VERSION;

export function App() {
  const { state: agent } = live();
  return (
    <>
      <Header name={agent?.node ?? ""} />
      <main>
        <VerdictCard />
        {agent === undefined ? undefined : (
          <>
            <Notices agent={agent} />
            <div class="columns">
              <div>
                <Blocked sightings={agent.sightings} />
                <Findings sightings={agent.sightings} />
                <PendingList report={agent.scan?.report} />
                <Timeline runs={agent.timeline} />
                <Heals runs={agent.runs} />
              </div>
              <div class="side">
                <Sources agent={agent} />
                <AgentFacts agent={agent} />
              </div>
            </div>
          </>
        )}
      </main>
    </>
  );
}

function Notices({ agent }: { readonly agent: WireState }) {
  return <NoticeList notices={noticesOf(agent, PAGE_VERSION)} />;
}

const NOT_YET: Verdict = { tone: "unsure", headline: "Connecting", detail: "Waiting for the agent's first message." };

function VerdictCard() {
  const { state: agent, link } = live();
  const { tone, headline, detail } = agent === undefined ? NOT_YET : pageVerdict(agent);
  const report = agent?.scan?.report;
  // A runtime that does not answer has no sandboxes to count.
  const known = report?.runtime.reachable === true ? report : undefined;
  const isStale = link.kind === "lost" && agent !== undefined;
  return (
    <VerdictBox
      tone={tone}
      headline={headline}
      detail={detail}
      isStale={isStale}
      numbers={[
        { name: "ready", value: known?.sandboxes.ready ?? "–" },
        { name: "not ready", value: known?.sandboxes.notReady ?? "–" },
        { name: "pods blocked", value: known === undefined ? "–" : blockedPods(agent?.sightings ?? []) },
        { name: "last scan", value: report === undefined ? "–" : <Ago at={report.observedAt} /> },
      ]}
    />
  );
}

function Sources({ agent }: { readonly agent: WireState }) {
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

function AgentFacts({ agent }: { readonly agent: WireState }) {
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
      <Definitions class="card facts" rows={facts} />
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
