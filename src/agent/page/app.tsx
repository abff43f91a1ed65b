import { Blocked, Findings } from "./findings.tsx";
import { blockedPods } from "./groups.ts";
import { Heals, PendingList } from "./heals.tsx";
import { live } from "./live.ts";
import { noticesOf } from "./notices.ts";
import { Ago, Connection } from "./parts.tsx";
import { AgentFacts, Sources } from "./source-table.tsx";
import { Timeline } from "./timeline-section.tsx";
import { pageVerdict, type Verdict } from "./verdict.ts";
import type { WireState } from "./wire.ts";

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

export function GhostMark() {
  return (
    <svg class="mark" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">
      <path d="M12 2a8 8 0 0 0-8 8v11.5l2.7-2 2.6 2 2.7-2 2.7 2 2.6-2 2.7 2V10a8 8 0 0 0-8-8Z" />
      <circle cx="9" cy="10" r="1.4" />
      <circle cx="15" cy="10" r="1.4" />
    </svg>
  );
}

export function Notices({ agent }: { readonly agent: WireState }) {
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
