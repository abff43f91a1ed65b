import type { Edit } from "./story-mutants.ts";

/** The text of a file with its edits made. Throws if one of them does not fit exactly once. */
export function applied(text: string, file: string, edits: readonly Edit[]): string {
  return edits
    .filter((edit) => edit.file === file)
    .reduce((before, { from, to }) => {
      const [head, tail, ...more] = before.split(from);
      if (head === undefined || tail === undefined || more.length > 0)
        throw new Error(`${file} has to contain this exactly once: ${from}`);
      return `${head}${to}${tail}`;
    }, text);
}
