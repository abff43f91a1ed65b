import { createHash, timingSafeEqual } from "node:crypto";
import { changingFile } from "./certificate.ts";

export type Access =
  | { readonly kind: "granted" }
  | { readonly kind: "denied" }
  | { readonly kind: "closed"; readonly message: string };

/** Checks an Authorization header. */
export type Gate = (authorization: string | undefined) => Promise<Access>;

export const OPEN_GATE: Gate = () => Promise.resolve({ kind: "granted" });

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
      return { kind: "closed", message: (error as Error).message };
    }
    const given = givenToken(authorization);
    return given !== undefined && sameSecret(given, token) ? { kind: "granted" } : { kind: "denied" };
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
  return timingSafeEqual(sha256(a), sha256(b));
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
