import { readFile, stat } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { describeError } from "../../host/source.ts";

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateFiles {
  read(): Promise<Certificate>;
  hasChanged(): Promise<boolean>;
}

export function certificateFiles({ certFile, keyFile }: TlsFiles): CertificateFiles {
  const certificate = changingFile("certificate", certFile);
  const privateKey = changingFile("private key", keyFile);
  return {
    read: async () => {
      const pair = { cert: await certificate.read(), key: await privateKey.read() };
      try {
        createSecureContext(pair);
      } catch (error) {
        const reason = (error as Error).message;
        throw new Error(`the certificate ${certFile} and the key ${keyFile} cannot be used together: ${reason}.`, {
          cause: error,
        });
      }
      return pair;
    },
    hasChanged: async () => (await certificate.hasChanged()) || (await privateKey.hasChanged()),
  };
}

/** A file that is replaced while the agent runs: a mounted secret, a renewed certificate. */
interface ChangingFile {
  read(): Promise<string>;
  /** Whether it changed since the last read. Throws if it is not accessible. */
  hasChanged(): Promise<boolean>;
}

/** `what` is its name in errors. */
export function changingFile(what: string, path: string): ChangingFile {
  let read: string | undefined;

  /** Follows links, because a mounted secret is one: a rotation changes the directory behind the name. */
  async function identity(): Promise<string> {
    const { dev, ino, mtimeMs, size } = await stat(path).catch(unreadable);
    return `${dev} ${ino} ${mtimeMs} ${size}`;
  }

  function unreadable(error: unknown): never {
    throw new Error(`cannot read the ${what} ${path}: ${describeError(error)}.`, { cause: error });
  }

  return {
    // The identity is read first: a change in between is then read twice and never missed.
    read: async () => {
      const before = await identity();
      const content = await readFile(path, "utf8").catch(unreadable);
      read = before;
      return content;
    },
    hasChanged: async () => (await identity()) !== read,
  };
}
