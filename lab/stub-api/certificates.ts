import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface Issued {
  readonly san?: string;
  /** Relative to now; by default from a day ago to in a year. */
  readonly validFromMs?: number;
  readonly validUntilMs?: number;
}

interface Validity {
  readonly from: number;
  readonly until: number;
}

export interface Authority extends KeyPair {
  issue(subject: string, more?: Issued): KeyPair;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

/** A certificate authority below `dir`. Its certificates are real ones, and so are their errors. */
export function makeAuthority(dir: string, name: string): Authority {
  const home = join(dir, name);
  const at = (file: string): string => join(home, file);
  const openssl = (...args: readonly string[]): void => {
    execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] });
  };
  const pair = (stem: string): KeyPair => ({
    cert: readFileSync(at(`${stem}.crt`), "utf8"),
    key: readFileSync(at(`${stem}.key`), "utf8"),
  });
  const sign = (stem: string, { from, until }: Validity, ...how: readonly string[]): void => {
    const files = ["-in", at(`${stem}.csr`), "-out", at(`${stem}.crt`), "-extfile", at(`${stem}.ext`)];
    const validity = ["-startdate", opensslTime(from), "-enddate", opensslTime(until)];
    openssl("ca", "-batch", "-notext", "-config", at("ca.conf"), ...files, ...validity, ...how);
  };
  mkdirSync(home);
  writeFileSync(at("index.txt"), "");
  writeFileSync(at("ca.conf"), configOf(home));
  openssl("req", ...NEW_KEY, "-keyout", at("ca.key"), "-out", at("ca.csr"), "-subj", `/CN=${name}`);
  writeFileSync(at("ca.ext"), "basicConstraints=critical,CA:TRUE\nsubjectKeyIdentifier=hash\n");
  // A self-signed request, unlike `req -x509`, may be valid from before now.
  sign("ca", { from: -DAY_MS, until: 400 * DAY_MS }, "-selfsign");
  let issued = 0;
  return {
    ...pair("ca"),
    issue: (subject, { san, validFromMs = -DAY_MS, validUntilMs = 365 * DAY_MS } = {}) => {
      const stem = String(issued++);
      openssl("req", ...NEW_KEY, "-keyout", at(`${stem}.key`), "-out", at(`${stem}.csr`), "-subj", subject);
      writeFileSync(at(`${stem}.ext`), san === undefined ? "" : `subjectAltName=${san}\n`);
      sign(stem, { from: validFromMs, until: validUntilMs });
      return pair(stem);
    },
  };
}

function opensslTime(fromNowMs: number): string {
  return new Date(Date.now() + fromNowMs).toISOString().replace(/[-:T]|\.\d+/g, "");
}

function configOf(home: string): string {
  return `[ca]
default_ca = lab
[lab]
database = ${home}/index.txt
certificate = ${home}/ca.crt
private_key = ${home}/ca.key
new_certs_dir = ${home}
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
[any]
organizationName = optional
commonName = supplied
`;
}
