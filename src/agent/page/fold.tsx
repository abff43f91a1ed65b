import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

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
