/** The maximum number of wrong letters in a word of this length. */
function tolerance(length: number): number {
  return Math.max(1, Math.floor(length / 3));
}

/** The known word that was probably meant, as the end of a sentence; empty if none is similar. */
export function didYouMean(word: string, known: readonly string[]): string {
  const nearest = nearestOf(word, known);
  return nearest === undefined ? "" : `; did you mean ${nearest}?`;
}

export function nearestOf(word: string, known: readonly string[]): string | undefined {
  const [nearest] = known
    .map((candidate) => ({ candidate, wrong: distance(word.toLowerCase(), candidate.toLowerCase()) }))
    .filter(
      ({ candidate, wrong }) =>
        wrong <= tolerance(candidate.length) || isPartOf(word, candidate) || hasSwappedLetters(word, candidate, wrong),
    )
    .toSorted((one, other) => one.wrong - other.wrong);
  return nearest?.candidate;
}

/** Class names are long, and a part of them is often remembered. */
function isPartOf(word: string, candidate: string): boolean {
  return word.length >= 4 && candidate.includes(word);
}

/** scna for scan: two swapped letters count as one error. */
function hasSwappedLetters(word: string, candidate: string, wrong: number): boolean {
  const letters = (of: string) => of.toLowerCase().split("").toSorted().join("");
  return wrong === 2 && letters(word) === letters(candidate);
}

/** The edit distance between two words. */
function distance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous.at(-1) ?? 0;
}
