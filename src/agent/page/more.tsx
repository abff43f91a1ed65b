import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

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
