import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface Authority extends KeyPair {
  issue(subject: string, more?: { readonly san?: string; readonly days?: number }): KeyPair;
}

/** A certificate authority of its own, made in `dir` for one test run. */
export function makeAuthority(dir: string, name: string): Authority {
  const at = (file: string): string => join(dir, `${name}-${file}`);
  const openssl = (...args: readonly string[]): void => {
    execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] });
  };
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  const pair = (stem: string): KeyPair => ({
    cert: readFileSync(at(`${stem}.crt`), "utf8"),
    key: readFileSync(at(`${stem}.key`), "utf8"),
  });
  openssl(
    "req",
    "-x509",
    ...newKey,
    "-keyout",
    at("ca.key"),
    "-out",
    at("ca.crt"),
    "-subj",
    `/CN=${name}`,
    "-days",
    "2",
  );
  let issued = 0;
  return {
    ...pair("ca"),
    issue: (subject, { san, days = 2 } = {}) => {
      const stem = String(issued++);
      openssl("req", ...newKey, "-keyout", at(`${stem}.key`), "-out", at(`${stem}.csr`), "-subj", subject);
      writeFileSync(at(`${stem}.ext`), san === undefined ? "" : `subjectAltName=${san}\n`);
      const signer = ["-CA", at("ca.crt"), "-CAkey", at("ca.key"), "-CAcreateserial"];
      const made = ["-out", at(`${stem}.crt`), "-days", String(days), "-extfile", at(`${stem}.ext`)];
      openssl("x509", "-req", "-in", at(`${stem}.csr`), ...signer, ...made);
      return pair(stem);
    },
  };
}
