import { findingAge, sentence, subjectInWords } from "../../report/words.ts";
import { blockedBy, type Group, groupsOf } from "./groups.ts";
import { classWords, live } from "./live.ts";
import { Ago, Command, Fold, More } from "./parts.tsx";
import { standingInWords, triesInWords } from "./verdict.ts";
import type { WireSighting } from "./wire.ts";

interface Sightings {
  readonly sightings: readonly WireSighting[];
}

const BLOCKED_AT_ONCE = 6;
const FINDINGS_AT_ONCE = 20;
/** So few are worth reading at once; more are first an overview. */
const FEW = 3;

export function Blocked({ sightings }: Sightings) {
  const blocked = blockedBy(sightings);
  if (blocked.length === 0) return undefined;
  return (
    <section aria-labelledby="blocked">
      <h2 id="blocked">What is blocked</h2>
      <More items={blocked} step={BLOCKED_AT_ONCE}>
        {(shown) => (
          <ul class="blocked">
            {shown.map(({ what, by }) => (
              <li key={what}>
                {what}
                {by === 1 ? "" : ` (by ${by} findings)`}
              </li>
            ))}
          </ul>
        )}
      </More>
    </section>
  );
}

export function Findings({ sightings }: Sightings) {
  if (sightings.length === 0) return undefined;
  const groups = groupsOf(sightings);
  return (
    <section aria-labelledby="findings">
      <h2 id="findings">Findings</h2>
      {groups.map((group) => (
        <ClassGroup group={group} startsOpen={sightings.length <= FEW || groups.length === 1} key={group.classId} />
      ))}
    </section>
  );
}

function ClassGroup({ group, startsOpen }: { readonly group: Group; readonly startsOpen: boolean }) {
  const { classId, sightings, severity } = group;
  const { code, title, explanation } = classWords(classId);
  const summary = (
    <div>
      <h3>
        {title} <span class="much">{sightings.length}</span>
      </h3>
      <div class="line">
        <span class={`badge ${severity}`}>{severity}</span>
        <span class="quiet">{standingInWords(sightings)}</span>
      </div>
    </div>
  );
  return (
    <Fold class="card group" summary={summary} startsOpen={startsOpen}>
      {() => (
        <>
          <p class="quiet">
            {explanation}{" "}
            {code === "" ? undefined : (
              <a href={`/explain/${classId}`} target="_blank" rel="noreferrer">
                Cause, cure and danger of {classId}
              </a>
            )}
          </p>
          <p>
            <Command line="unghost heal --dry-run" />
          </p>
          <More items={sightings} step={FINDINGS_AT_ONCE} name="findings">
            {(shown) =>
              shown.map((sighting) => (
                <Finding sighting={sighting} startsOpen={sightings.length === 1} key={sighting.finding.id} />
              ))
            }
          </More>
        </>
      )}
    </Fold>
  );
}

/** One finding: what it is, what is done about it, and what proves it. */
function Finding({ sighting, startsOpen }: { readonly sighting: WireSighting; readonly startsOpen: boolean }) {
  const { finding, standing, firstSeenAt } = sighting;
  const tries = triesInWords(sighting);
  const summary = (
    <div class="line">
      <span class="subject">{briefly(finding.subject)}</span>
      <span class={`badge ${standing.kind}`}>{STANDING[standing.kind]}</span>
      {tries === undefined || standing.kind === "given-up" ? undefined : <span class="badge failed">{tries}</span>}
      <span class="quiet">
        {finding.since === undefined ? "" : `${findingAge(finding, new Date(live().nodeClock).toISOString())} old, `}
        first seen <Ago at={firstSeenAt} />
      </span>
    </div>
  );
  return (
    <Fold class="finding" summary={summary} startsOpen={startsOpen}>
      {() => (
        <>
          <p>{finding.summary}</p>
          <StandingWords standing={standing} tries={tries} />
          <h4>Evidence</h4>
          <dl class="evidence">
            {finding.evidence.map(({ source, fact }) => (
              <div key={`${source} ${fact}`}>
                <dt>{source}</dt>
                <dd>{fact}</dd>
              </div>
            ))}
          </dl>
          <Steps finding={finding} />
          {finding.subject.sandboxId === undefined ? undefined : (
            <p class="quiet">
              Sandbox <code>{finding.subject.sandboxId}</code>{" "}
              <Command line={`unghost scan ${finding.subject.sandboxId.slice(0, 13)}`} />
            </p>
          )}
        </>
      )}
    </Fold>
  );
}

/** The plan if there is one; the steps of a manual class. What is left alone has its reason in its standing. */
function Steps({ finding: { treatment, plan } }: Pick<WireSighting, "finding">) {
  const planned = plan?.steps ?? [];
  const steps = planned.length > 0 || treatment.automatic ? planned : treatment.steps;
  if (steps.length === 0) return;
  return (
    <>
      <h4>{steps === planned ? "unghost heal runs" : "Manual steps"}</h4>
      <ol>
        {steps.map((step) => (
          <li key={step}>{sentence(step)}</li>
        ))}
      </ol>
    </>
  );
}

/** The evidence names its files and ids at length. */
function briefly({ pod, ...subject }: WireSighting["finding"]["subject"]): string {
  return pod === undefined ? subjectInWords(subject) : `${pod.namespace}/${pod.name} (attempt ${pod.attempt})`;
}

const STANDING = { observed: "observed", waiting: "waiting", healing: "healing", "given-up": "given up" } as const;

interface Standing extends Pick<WireSighting, "standing"> {
  readonly tries: string | undefined;
}

function StandingWords({ standing, tries }: Standing) {
  const tried = tries === undefined ? "" : ` ${sentence(tries)}`;
  if (standing.kind === "healing") return <p class="standing healing">It is being healed now.{tried}</p>;
  return (
    <p class={`standing ${standing.kind}`}>
      {standing.message}
      {tried}
      {standing.kind === "given-up" ? <strong class="next">Next: {standing.next}</strong> : undefined}
    </p>
  );
}
