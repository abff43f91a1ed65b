import { findingAge, sentence, subjectInWords } from "../../report/words.ts";
import { Command } from "./command.tsx";
import { Fold } from "./fold.tsx";
import { live } from "./live.ts";
import { Ago } from "./time.tsx";
import type { WireSighting } from "./wire.ts";

interface FindingProps {
  readonly sighting: WireSighting;
  readonly startsOpen: boolean;
}

/** One finding: what it is, what is done about it, and what proves it. */
export function Finding({ sighting, startsOpen }: FindingProps) {
  const { finding, standing, attempts, firstSeenAt } = sighting;
  const summary = (
    <div class="line">
      <span class="subject">{briefly(finding.subject)}</span>
      <span class={`badge ${standing.kind}`}>{STANDING[standing.kind]}</span>
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
          <StandingWords standing={standing} attempts={attempts} />
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

function StandingWords({ standing, attempts }: Pick<WireSighting, "standing" | "attempts">) {
  const tried = attempts === 0 ? "" : ` Attempts so far: ${attempts}.`;
  if (standing.kind === "healing") return <p class="standing healing">It is being healed now.{tried}</p>;
  return (
    <p class={`standing ${standing.kind}`}>
      {standing.message}
      {tried}
      {standing.kind === "given-up" ? <strong class="next">Next: {standing.next}</strong> : undefined}
    </p>
  );
}
