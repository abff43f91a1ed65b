const same = (text: string): string => "f".repeat(text.length);

/** A terminal pads lines with spaces. */
export function trimmed(screen: string): string {
  return screen
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

/** Replaces what differs from run to run by text of the same length if a column follows: ids, ages, times. */
export function normalised(screen: string): string {
  return (
    trimmed(screen)
      // Journal ids, and the suffix of a run's id.
      .replace(/\b[0-9a-z]{9}-[0-9a-z]{4}\b/g, "journalid-0000")
      .replace(/\b(?:cli|agent|boot) {2,}[0-9a-z]{4} {2}/g, (whole) => `${whole.slice(0, -6)}0000  `)
      .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "00000000-0000-0000-0000-000000000000")
      // Sandbox ids, complete, short, or truncated with an ellipsis.
      .replace(/[0-9a-f]{8,}/g, same)
      .replace(/(?<=…)[0-9a-f]{6,}|[0-9a-f]{6,}(?=…)/g, same)
      .replace(/(?<=…)[0-9a-f]+(?=-eth0)/g, same)
      .replace(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, "2024-01-31T10:15:30.000Z")
      .replace(/\bpid \d+/g, "pid 1234")
      // A leaked lease is as old as its file, which the fault dates before the boot.
      .replace(/\b\d+[hd] {2,}/g, (whole) => "0s".padEnd(whole.length))
      .replace(/\b\d+(?:\.\d+)?(?:s|m|ms)\b( {2,})?/g, (whole, spaces: string | undefined) =>
        spaces === undefined ? "0s" : "0s".padEnd(whole.length),
      )
  );
}

/** Sandboxes are healed in the order of their ids, which differ: sorts entries with their continuation lines. */
export function inOrder(text: string): string {
  const blocks = text.split(/\n(?! )/);
  const isEntry = (block: string): boolean => /^(?:healed|journalid)/.test(block);
  const first = blocks.findIndex(isEntry);
  const last = blocks.findLastIndex(isEntry);
  const byName = new Intl.Collator("en", { numeric: true });
  const entries = blocks.slice(first, last + 1).toSorted(byName.compare);
  return first < 0 ? text : [...blocks.slice(0, first), ...entries, ...blocks.slice(last + 1)].join("\n");
}
