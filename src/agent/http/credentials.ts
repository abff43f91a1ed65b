import { timingSafeEqual } from "node:crypto";
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { createSecureContext } from "node:tls";
import { sha256Of } from "../../heal/quarantine/file-identity.ts";
import { resolveOnHost } from "../../host/paths.ts";
import { readRegularFile } from "../../host/safe-fs.ts";
import { describeError } from "../../host/source.ts";

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export function certificateFiles({ certFile, keyFile }: TlsFiles) {
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
    hasChanged: async (): Promise<boolean> => (await certificate.hasChanged()) || (await privateKey.hasChanged()),
  };
}

/**
 * A file that is replaced while the agent runs: a mounted secret, a renewed certificate. `what` is its name in errors.
 * Throws if it is not accessible.
 */
function changingFile(what: string, path: string) {
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
    read: async (): Promise<string> => {
      const before = await identity();
      const file = readRegularFile(resolveOnHost("/", resolve(path), "follow"));
      if (file.kind !== "content") {
        throw new Error(`cannot read the ${what} ${path}: it ${file.kind === "gone" ? "is missing" : file.reason}.`);
      }
      read = before;
      return file.text;
    },
    hasChanged: async (): Promise<boolean> => (await identity()) !== read,
  };
}

/** Checks an Authorization header. `closed`: why nothing can be checked. */
export type Gate = (authorization: string | undefined) => Promise<"granted" | "denied" | { readonly closed: string }>;

export const OPEN_GATE: Gate = () => Promise.resolve("granted");

/**
 * Accepts the token in a file, which is read again when it changes, because a mounted secret is rotated in place.
 * `Bearer TOKEN`, or Basic with the token as password and any user name: a browser asks for that itself and also sends
 * it with its event stream, for which a page cannot set headers.
 */
export async function tokenGate(path: string): Promise<Gate> {
  const file = changingFile("token file", path);
  let token = tokenIn(path, await file.read());

  return async (authorization) => {
    try {
      if (await file.hasChanged()) token = tokenIn(path, await file.read());
    } catch (error) {
      // Without the file it is unknown whether the old token is still valid.
      return { closed: (error as Error).message };
    }
    const given = givenToken(authorization);
    return given !== undefined && sameSecret(given, token) ? "granted" : "denied";
  };
}

function tokenIn(path: string, content: string): string {
  const token = content.trim();
  if (token === "") throw new Error(`the token file ${path} is empty. Write a long random token into it.`);
  return token;
}

function givenToken(authorization: string | undefined): string | undefined {
  const [, scheme = "", value = ""] = /^(\S+) +(.*)$/.exec(authorization ?? "") ?? [];
  if (scheme.toLowerCase() === "bearer") return value;
  if (scheme.toLowerCase() !== "basic") return undefined;
  const credentials = Buffer.from(value, "base64").toString();
  const colon = credentials.indexOf(":");
  return colon < 0 ? undefined : credentials.slice(colon + 1);
}

/** Digests have the same length, so the comparison takes constant time. */
function sameSecret(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(sha256Of(a)), Buffer.from(sha256Of(b)));
}
