import { durationInWords } from "../../host/text.ts";
import { Blocked, Findings } from "./findings.tsx";
import { blockedPods } from "./groups.ts";
import { Heals, PendingList } from "./heals.tsx";
import { live } from "./live.ts";
import { Ago, Connection, Definitions } from "./parts.tsx";
import { nodeFacts, sourcesOf } from "./sources.ts";
import { Timeline } from "./timeline-section.tsx";
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
      <header class="top">
        <GhostMark />
        <h1>
          <span class="brand">unghost</span> <span class="node">{agent?.node ?? ""}</span>
        </h1>
        <Connection />
      </header>
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

function GhostMark() {
  return (
    <svg class="mark" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">
      <path d="M12 2a8 8 0 0 0-8 8v11.5l2.7-2 2.6 2 2.7-2 2.7 2 2.6-2 2.7 2V10a8 8 0 0 0-8-8Z" />
      <circle cx="9" cy="10" r="1.4" />
      <circle cx="15" cy="10" r="1.4" />
    </svg>
  );
}

function Notices({ agent }: { readonly agent: WireState }) {
  const notices = noticesOf(agent, PAGE_VERSION);
  if (notices.length === 0) return undefined;
  return (
    <section aria-label="Notices" class="notices">
      {notices.map(({ title, text, since }) => (
        <div class="notice" key={title}>
          <h2>{title}</h2>
          <p>
            {text}
            {since === undefined ? undefined : (
              <>
                {" "}
                Opened <Ago at={since} />.
              </>
            )}
          </p>
        </div>
      ))}
    </section>
  );
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
    <section class={`verdict ${tone}${isStale ? " stale" : ""}`} aria-labelledby="verdict">
      <div aria-live="polite" aria-atomic="true">
        <h2 id="verdict">{headline}</h2>
        <p>{detail}</p>
      </div>
      <Definitions
        class="numbers"
        rows={[
          { name: "ready", value: known?.sandboxes.ready ?? "–" },
          { name: "not ready", value: known?.sandboxes.notReady ?? "–" },
          { name: "pods blocked", value: known === undefined ? "–" : blockedPods(agent?.sightings ?? []) },
          { name: "last scan", value: report === undefined ? "–" : <Ago at={report.observedAt} /> },
        ]}
      />
    </section>
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
