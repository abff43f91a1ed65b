import { readFile, stat } from "node:fs/promises";
import { describeError } from "../../host/system-error.ts";

/** A file that somebody replaces while the agent runs: a mounted secret, a renewed certificate. */
export interface ChangingFile {
  read(): Promise<string>;
  /** Whether it is another one than was read last. Throws when it cannot be seen. */
  hasChanged(): Promise<boolean>;
}

/** `what` names it in errors. */
export function changingFile(what: string, path: string): ChangingFile {
  let read: string | undefined;

  /** Through links, because a mounted secret is one: rotating it swaps the folder behind the name. */
  async function identity(): Promise<string> {
    const { dev, ino, mtimeMs, size } = await stat(path).catch(unreadable);
    return `${dev} ${ino} ${mtimeMs} ${size}`;
  }

  function unreadable(error: unknown): never {
    throw new Error(`cannot read the ${what} ${path}: ${describeError(error)}.`, { cause: error });
  }

  return {
    // The identity is taken first: a change in between is then read twice and never missed.
    read: async () => {
      const before = await identity();
      const content = await readFile(path, "utf8").catch(unreadable);
      read = before;
      return content;
    },
    hasChanged: async () => (await identity()) !== read,
  };
}
