/** Habits of other tools that stricli does not know: -ojson, -o=json, and -v in front of the command. */
export function normaliseArgs(args: readonly string[]): readonly string[] {
  const end = args.indexOf("--");
  const ours = end < 0 ? args : args.slice(0, end);
  const rest = end < 0 ? [] : args.slice(end);
  const leading = ours.findIndex((word) => word !== "-v" && word !== "--verbose");
  if (leading <= 0) return [...ours.flatMap(separated), ...rest];
  return [...ours.slice(leading).flatMap(separated), "-v", ...rest];
}

function separated(word: string): readonly string[] {
  const value = /^-o=?([a-z]+)$/.exec(word)?.[1];
  return value === undefined ? [word] : ["-o", value];
}

/** Words before `--` alone: what follows is for somebody else. */
export function asksFor(args: readonly string[], ...words: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end < 0 ? args : args.slice(0, end)).some((word) => words.includes(word));
}
