import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

interface FoldProps {
  readonly class: string;
  readonly summary: ComponentChildren;
  readonly startsOpen?: boolean;
  readonly children: () => ComponentChildren;
}

/** A <details> whose content exists only while it is open. */
export function Fold({ class: name, summary, startsOpen = false, children }: FoldProps) {
  const isOpen = useSignal(startsOpen);
  return (
    <details class={name} open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen.value ? children() : undefined}
    </details>
  );
}
