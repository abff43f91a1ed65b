import { classWords } from "./class-words.ts";
import { Command } from "./command.tsx";
import { Finding } from "./finding.tsx";
import { Fold } from "./fold.tsx";
import { blockedBy, type Group, groupsOf } from "./groups.ts";
import { More } from "./more.tsx";
import { standingInWords } from "./verdict.ts";
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
