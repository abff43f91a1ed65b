import { execFileSync } from "node:child_process";
import { copyFileSync, writeFileSync } from "node:fs";
import { connect } from "node:tls";
import { afterAll, beforeEach, expect, test } from "vitest";
import { until } from "../../../lab/poll.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { ask } from "./ask.ts";
import { opened } from "./opened.ts";

const HANG_MS = 30_000;
const dir = tempDir();
const TLS = { certFile: dir.join("tls.crt"), keyFile: dir.join("tls.key") };
const OFTEN = { tls: TLS, renewEveryMs: 20 };
makeCertificate("first");
makeCertificate("second");

beforeEach(() => install("first"));
afterAll(() => dir.remove());

function makeCertificate(name: string): void {
  const files = ["-keyout", dir.join(`${name}.key`), "-out", dir.join(`${name}.crt`)];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  execFileSync("openssl", ["req", "-x509", ...key, ...files, "-subj", `/CN=${name}`, "-days", "2"], { stdio: "pipe" });
}

function install(name: string): void {
  copyFileSync(dir.join(`${name}.key`), TLS.keyFile);
  copyFileSync(dir.join(`${name}.crt`), TLS.certFile);
}

function certificateName(address: string): Promise<string | undefined> {
  const { hostname, port } = new URL(address);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().subject.CN?.toString());
      socket.destroy();
    });
    socket.once("error", reject);
  });
}

test("serves everything over TLS with a certificate, and nothing without", async () => {
  const { address } = await opened({ tls: TLS });

  expect(address).toMatch(/^https:/);
  expect((await ask(address, "/healthz")).text).toBe("ok\n");
  await expect(ask(address.replace("https:", "http:"), "/healthz")).rejects.toThrow();
});

test("uses a renewed certificate on the same port without a restart", async () => {
  const { address, problems } = await opened(OFTEN);

  install("second");

  await until("the new certificate", HANG_MS, async () => {
    // Between two servers the port is closed for a moment.
    const name = await certificateName(address).catch(() => undefined);
    return name === "second" ? name : undefined;
  });
  expect((await ask(address, "/healthz")).text).toBe("ok\n");
  expect(problems).toEqual([]);
});

test("reports a certificate that does not match its key once, and keeps the previous one", async () => {
  const { address, problems } = await opened(OFTEN);

  copyFileSync(dir.join("second.crt"), TLS.certFile);
  await until("the complaint", HANG_MS, () => problems[0]);
  await new Promise((resolve) => setTimeout(resolve, 10 * OFTEN.renewEveryMs));

  expect(problems).toEqual([
    expect.stringMatching(
      /renewing the certificate failed; the previous one stays active: the certificate .* and the key .* cannot be used together: /,
    ),
  ]);
  expect(await certificateName(address)).toBe("first");
});

test.each([
  ["is missing", { ...TLS, certFile: dir.join("none") }, /cannot read the certificate .*none: there is no such file/],
  [
    "is not a certificate",
    { ...TLS, certFile: dir.join("nonsense") },
    /nonsense and the key .* cannot be used together/,
  ],
])("an agent whose certificate %s does not start", async (_why, tls, message) => {
  writeFileSync(dir.join("nonsense"), "nonsense");

  await expect(opened({ tls })).rejects.toThrow(message);
});
