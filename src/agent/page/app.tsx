import { AgentFacts } from "./agent-facts.tsx";
import { Connection } from "./connection-state.tsx";
import { Blocked, Findings } from "./findings.tsx";
import { GhostMark } from "./ghost-mark.tsx";
import { Heals } from "./heals.tsx";
import { live } from "./live.ts";
import { Notices } from "./notice-list.tsx";
import { PendingList } from "./pending-list.tsx";
import { Sources } from "./source-table.tsx";
import { Timeline } from "./timeline-section.tsx";
import { VerdictCard } from "./verdict-card.tsx";

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
