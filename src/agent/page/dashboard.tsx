import { render } from "preact";
import { useState } from "preact/hooks";
import type { FleetRow, FleetState } from "../../report/fleet-state.ts";
import { chosenRows, fleetNotices, fleetVerdict } from "./fleet-verdict.ts";
import { followEvents, live } from "./live.ts";
import { Ago, More } from "./parts.tsx";
import { labelTab } from "./tab.ts";
import { Header, NoticeList, VerdictBox } from "./top.tsx";
import { readState } from "./wire.ts";

const NODES_AT_ONCE = 50;
const CLASSES_AT_ONCE = 12;
const PODS_AT_ONCE = 10;
const HEALS_AT_ONCE = 10;

function Dashboard({ fleet }: { readonly fleet: FleetState | undefined }) {
  const { link } = live();
  const blocked = fleet?.nodes.reduce((sum, node) => sum + node.blocked, 0);
  const isRead = fleet?.readAt !== undefined;
  return (
    <>
      <Header name={fleet?.cluster ?? ""} />
      <main>
        <VerdictBox
          {...fleetVerdict(fleet)}
          isStale={link.kind === "lost" || fleet?.trouble !== undefined}
          numbers={[
            { name: "nodes", value: isRead ? fleet.nodes.length : "–" },
            { name: "pods blocked", value: isRead ? (blocked ?? 0) : "–" },
            { name: "heals running", value: isRead ? fleet.heals.length : "–" },
            { name: "read", value: isRead ? <Ago at={fleet.readAt ?? ""} /> : "–" },
          ]}
        />
        {fleet === undefined ? undefined : <NoticeList notices={fleetNotices(fleet)} />}
        {isRead ? <Facts fleet={fleet} /> : undefined}
      </main>
    </>
  );
}

function Facts({ fleet }: { readonly fleet: FleetState }) {
  const [text, setText] = useState("");
  const [classId, setClass] = useState<string | undefined>(undefined);
  // A class that is gone must not hide every node.
  const chosen = fleet.classes.some(({ id }) => id === classId) ? classId : undefined;
  return (
    <div class="columns">
      <div>
        <Classes fleet={fleet} chosen={chosen} onChoose={(id) => setClass(id === chosen ? undefined : id)} />
        <section aria-labelledby="nodes">
          <h2 id="nodes">Nodes</h2>
          <label class="filter">
            Name contains{" "}
            <input type="search" value={text} onInput={({ currentTarget }) => setText(currentTarget.value)} />
          </label>
          <Nodes nodes={chosenRows(fleet.nodes, { text, classId: chosen })} key={`${text} ${chosen ?? ""}`} />
        </section>
      </div>
      <div class="side">
        <Blocked fleet={fleet} />
        <Heals fleet={fleet} />
        <Slots fleet={fleet} />
      </div>
    </div>
  );
}

interface ClassesProps {
  readonly fleet: FleetState;
  readonly chosen: string | undefined;
  readonly onChoose: (id: string) => void;
}

function Classes({ fleet: { classes }, chosen, onChoose }: ClassesProps) {
  if (classes.length === 0) return undefined;
  return (
    <section aria-labelledby="classes">
      <h2 id="classes">Classes</h2>
      <More items={classes} step={CLASSES_AT_ONCE}>
        {(shown) => (
          <ul class="choices">
            {shown.map(({ id, title, nodes, findings }) => (
              <li key={id}>
                <button type="button" aria-pressed={id === chosen} onClick={() => onChoose(id)} title={title}>
                  {id} <span class="quiet">{`${nodes} ${nodes === 1 ? "node" : "nodes"}, ${findings} found`}</span>
                </button>
              </li>
            ))}
          </ul>
        )}
      </More>
    </section>
  );
}

function Nodes({ nodes }: { readonly nodes: readonly FleetRow[] }) {
  if (nodes.length === 0) return <p class="quiet">No node is like that.</p>;
  return (
    <More items={nodes} step={NODES_AT_ONCE} name="nodes">
      {(shown) => (
        <ul class="nodes card">
          {shown.map((node) => (
            <NodeRow node={node} key={node.name} />
          ))}
        </ul>
      )}
    </More>
  );
}

function NodeRow({ node }: { readonly node: FleetRow }) {
  const { name, verdict, isStale, status, agent, classes, blocked, cannotStart } = node;
  return (
    <li>
      <h3>
        {name} <span class={`badge ${verdict}`}>{`${verdict}${isStale ? " (stale)" : ""}`}</span>
      </h3>
      <p>
        {classes.map(({ class: id, count }) => (
          <span class="found" key={id}>{`${count} ${id}`}</span>
        ))}
        {blocked > 0 ? (
          <span class="found bad">{`${blocked} ${blocked === 1 ? "pod" : "pods"} blocked`}</span>
        ) : undefined}
        {cannotStart === undefined ? undefined : (
          <span class="found bad">
            cannot start pods
            {cannotStart === "" ? undefined : (
              <>
                , since <Ago at={cannotStart} />
              </>
            )}
          </span>
        )}
      </p>
      <p class="quiet">{`${status || "no such node"}; agent: ${AGENTS[agent] ?? agent}`}</p>
    </li>
  );
}

const AGENTS: Readonly<Record<string, string>> = {
  ready: "ready",
  "not-ready": "not ready",
  none: "none",
  "no-pod": "on the node",
  unreadable: "of another version",
};

function Blocked({ fleet: { blockedPods } }: { readonly fleet: FleetState }) {
  if (blockedPods.length === 0) return undefined;
  return (
    <section aria-labelledby="blocked">
      <h2 id="blocked">Blocked pods</h2>
      <More items={blockedPods} step={PODS_AT_ONCE}>
        {(shown) => (
          <ul class="blocked">
            {shown.map(({ pod, node }) => (
              <li key={`${node} ${pod}`}>
                {pod} <span class="quiet">on {node}</span>
              </li>
            ))}
          </ul>
        )}
      </More>
    </section>
  );
}

function Heals({ fleet: { heals } }: { readonly fleet: FleetState }) {
  return (
    <section aria-labelledby="heals">
      <h2 id="heals">Running heals</h2>
      {heals.length === 0 ? <p class="quiet">None.</p> : undefined}
      <More items={heals} step={HEALS_AT_ONCE}>
        {(shown) => (
          <ul class="plain">
            {shown.map(({ node, what, by }) => (
              <li key={`${node} ${what} ${by ?? ""}`}>
                {node} <span class="quiet">{`${what}${by === undefined ? "" : `, by ${by}`}`}</span>
              </li>
            ))}
          </ul>
        )}
      </More>
    </section>
  );
}

function Slots({ fleet: { slots } }: { readonly fleet: FleetState }) {
  return (
    <section aria-labelledby="slots">
      <h2 id="slots">Slots of the fleet</h2>
      {slots === undefined ? <p class="quiet">Not read.</p> : undefined}
      {slots?.length === 0 ? <p class="quiet">No agent has used one.</p> : undefined}
      <ul class="plain">
        {(slots ?? []).map(({ name, holder }) => (
          <li key={name}>
            {name} <span class="quiet">{holder === "" ? "free" : `held by ${holder}`}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const root = document.getElementById("page");
if (root === null) throw new Error("the document has no element #page: it was not made by scripts/build-page.ts");
root.replaceChildren();
let fleet: FleetState | undefined;

function draw(place: HTMLElement): void {
  render(<Dashboard fleet={fleet} />, place);
  if (fleet !== undefined) labelTab(fleet.cluster, fleetVerdict(fleet), live().link.kind === "lost");
}

draw(root);
followEvents(
  (data) => {
    fleet = readState<FleetState>(data);
    draw(root);
  },
  () => draw(root),
);
