import type { ComponentChildren } from "preact";
import { Ago, Connection, Definitions } from "./parts.tsx";
import type { Notice, Verdict } from "./verdict.ts";

/** The top of the status page of a node, and of the dashboard of a cluster. */
export function Header({ name }: { readonly name: string }) {
  return (
    <header class="top">
      <GhostMark />
      <h1>
        <span class="brand">unghost</span> <span class="node">{name}</span>
      </h1>
      <Connection />
    </header>
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

interface BoxProps extends Verdict {
  readonly isStale: boolean;
  readonly numbers: readonly { readonly name: string; readonly value: ComponentChildren }[];
}

export function VerdictBox({ tone, headline, detail, isStale, numbers }: BoxProps) {
  return (
    <section class={`verdict ${tone}${isStale ? " stale" : ""}`} aria-labelledby="verdict">
      <div aria-live="polite" aria-atomic="true">
        <h2 id="verdict">{headline}</h2>
        <p>{detail}</p>
      </div>
      <Definitions class="numbers" rows={numbers} />
    </section>
  );
}

export function NoticeList({ notices }: { readonly notices: readonly Notice[] }) {
  if (notices.length === 0) return undefined;
  return (
    <section aria-label="Notices" class="notices">
      {notices.map(({ title, text, since }) => (
        <div class="notice" key={`${title} ${text}`}>
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
