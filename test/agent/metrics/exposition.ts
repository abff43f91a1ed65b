/** A series as it stands in the exposition, `name{label="value"}`, and its value. */
export function seriesIn(text: string): ReadonlyMap<string, number> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(" ");
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }),
  );
}

export function namesIn(text: string): ReadonlySet<string> {
  return new Set([...seriesIn(text).keys()].map((series) => series.replace(/\{.*$/s, "")));
}
