import { classWords } from "./class-words.ts";
import { More } from "./more.tsx";
import { At } from "./time.tsx";
import type { WireHeal } from "./wire.ts";
import { secondsInWords } from "./words.ts";

const HEALS_AT_ONCE = 8;

export function Heals({ heals }: { readonly heals: readonly WireHeal[] }) {
  return (
    <section aria-labelledby="heals">
      <h2 id="heals">Last heals</h2>
      {heals.length === 0 ? (
        <p class="quiet">Nothing has had to be healed since the agent started.</p>
      ) : (
        <More items={heals} step={HEALS_AT_ONCE} name="heals">
          {(shown) => (
            <ol class="card heals">
              {shown.map((heal) => (
                <Heal heal={heal} key={`${heal.at} ${heal.finding}`} />
              ))}
            </ol>
          )}
        </More>
      )}
    </section>
  );
}

function Heal({ heal }: { readonly heal: WireHeal }) {
  const { at, outcome, pod, summary, reason, seconds, journalId, undo } = heal;
  return (
    <li>
      <span class="when">
        <At at={at} />
      </span>
      <div>
        <span class={`badge ${outcome}`}>{outcome}</span>{" "}
        <strong>{pod === undefined ? classWords(heal.class).title : `${pod.namespace}/${pod.name}`}</strong>
        <p>{summary}</p>
        {reason === undefined ? undefined : <p>{reason}</p>}
        <p class="quiet">
          Took {secondsInWords(seconds)}.
          {journalId === undefined ? undefined : (
            <>
              {" "}
              Journal entry <JournalEntry id={journalId} undo={undo} />
            </>
          )}
        </p>
      </div>
    </li>
  );
}

/** With the commands that take it back, where `unghost undo` can: a sandbox that was removed stays removed. */
function JournalEntry({ id, undo = [] }: { readonly id: string; readonly undo: WireHeal["undo"] }) {
  if (undo.length === 0) return <code>{id}</code>;
  return (
    <>
      <code>{id}</code>. Put its files back with{" "}
      {undo.map((one, index) => (
        <>
          {index === 0 ? undefined : ", "}
          <code>unghost undo {one}</code>
        </>
      ))}
    </>
  );
}
