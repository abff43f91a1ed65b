import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { live } from "./live.ts";
import { ago, timeOfDay } from "./words.ts";

/** A command to be copied as it is: by its button, or by one click into it. */
export function Command({ line: command }: { readonly line: string }) {
  const place = live().state?.commandPlace;
  const line = place === undefined ? command : `${place} ${command}`;
  const [isCopied, setCopied] = useState(false);
  const copy = (): void => {
    copyText(line).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <span class="command">
      <code>{line}</code>
      <button type="button" class="copy" aria-label={`Copy ${line}`} onClick={copy}>
        {isCopied ? "copied" : "copy"}
      </button>
    </span>
  );
}

/** Without TLS browsers have no clipboard interface; the old way works there. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return await navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  if (!isDone) throw new Error("not copied");
}

interface FoldProps {
  readonly class: string;
  readonly summary: ComponentChildren;
  readonly startsOpen?: boolean;
  readonly children: () => ComponentChildren;
}

/** A <details> whose content exists only while it is open. */
export function Fold({ class: name, summary, startsOpen = false, children }: FoldProps) {
  const [isOpen, setOpen] = useState(startsOpen);
  return (
    <details class={name} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen ? children() : undefined}
    </details>
  );
}

interface MoreProps<Item> {
  readonly items: readonly Item[];
  readonly step: number;
  /** What the items are; missing where the heading names them. */
  readonly name?: string;
  readonly children: (shown: readonly Item[]) => ComponentChildren;
}

/** A list's beginning, and more of it on demand: hundreds of findings must not make a page that no phone can scroll. */
export function More<Item>({ items, step, name, children }: MoreProps<Item>) {
  const [shown, setShown] = useState(step);
  const left = items.length - shown;
  return (
    <>
      {children(items.slice(0, shown))}
      {left <= 0 ? undefined : (
        <p>
          <button type="button" onClick={() => setShown(shown + step)}>
            Show {Math.min(step, left)} more{name === undefined ? "" : ` ${name}`}
          </button>{" "}
          <span class="quiet">{left} not shown</span>
        </p>
      )}
    </>
  );
}

interface DefinitionsProps {
  readonly class?: string;
  /** The names differ. */
  readonly rows: readonly { readonly name: string; readonly value: ComponentChildren }[];
}

export function Definitions({ class: name, rows }: DefinitionsProps) {
  return (
    <dl class={name}>
      {rows.map((row) => (
        <div key={row.name}>
          <dt>{row.name}</dt>
          <dd>{row.value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface TimeProps {
  readonly at: string;
}

/** A time on the node's clock, as its age; the time itself is in the title. */
export function Ago({ at }: TimeProps) {
  return timeElement(at, ago);
}

export function At({ at }: TimeProps) {
  return timeElement(at, timeOfDay);
}

function timeElement(at: string, inWords: (ms: number, nowMs: number) => string) {
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={new Date(ms).toLocaleString()}>
      {inWords(ms, live().nodeClock)}
    </time>
  );
}

/** Whether what is shown is how it is now. Only the change is announced, not the passing seconds. */
export function Connection() {
  const { link, clock } = live();
  const lastSeenMs = link.kind === "lost" ? link.lastSeenMs : undefined;
  return (
    <p class={`link ${link.kind}`}>
      <span role="status">{WORDS[link.kind]}</span>
      {lastSeenMs === undefined ? undefined : (
        <span>
          , last seen {timeOfDay(lastSeenMs, clock)} ({ago(lastSeenMs, clock)})
        </span>
      )}
    </p>
  );
}

const WORDS = { connecting: "connecting", live: "live", lost: "connection lost" } as const;
