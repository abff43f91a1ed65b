import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { makeAuthority } from "../../lab/stub-api/certificates.ts";
import type { ApiAccess, FileText, ReadText } from "../../src/kube/access.ts";
import { kubeconfigAccess } from "../../src/kube/kubeconfig.ts";

const dir = mkdtempSync(join(tmpdir(), "unghost-kubeconfig-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const ca = makeAuthority(dir, "cluster");
const admin = ca.issue("/O=system:masters/CN=admin");
const kubelet = ca.issue("/O=system:nodes/CN=system:node:edge-7.lan");
const base64 = (text: string): string => Buffer.from(text).toString("base64");

const PATH = "/etc/kubernetes/kubelet.conf";

function filesOf(files: Readonly<Record<string, string | FileText>>): ReadText {
  return (path) => {
    const file = files[path];
    if (file === undefined) return { kind: "missing" };
    return typeof file === "string" ? { kind: "text", text: file } : file;
  };
}

/** Whatever the environment of this test run adds. */
function accessOf(files: ReadText): Promise<ApiAccess> {
  return kubeconfigAccess(PATH, files, { uid: 0, env: {} });
}

interface Parts {
  readonly cluster?: Readonly<Record<string, unknown>>;
  readonly user?: Readonly<Record<string, unknown>>;
  readonly rest?: Readonly<Record<string, unknown>>;
}

function config({ cluster = {}, user = {}, rest = {} }: Parts = {}): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "here",
    contexts: [{ name: "here", context: { cluster: "lab", user: "me" } }],
    clusters: [{ name: "lab", cluster: { server: "https://10.0.0.1:6443", ...cluster } }],
    users: [{ name: "me", user }],
    ...rest,
  });
}

describe("a kubeconfig without a CA", () => {
  const file = filesOf({ [PATH]: config() });
  const env = { SSL_CERT_FILE: "/home/user/ca.pem" };

  test.each(["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"])(
    "is refused for root if %s of the caller adds trust",
    async (name) => {
      const reading = kubeconfigAccess(PATH, file, { uid: 0, env: { [name]: "/home/user/ca.pem" } });

      await expect(reading).rejects.toMatchObject({
        kind: "unusable",
        message: expect.stringMatching(new RegExp(`names no certificate-authority, and ${name} .*unset ${name}`)),
      });
    },
  );

  test.each([
    ["no such variable", file, { uid: 0, env: { SSL_CERT_FILE: "" } }],
    ["an ordinary user", file, { uid: 1000, env }],
    ["plain http", filesOf({ [PATH]: config({ cluster: { server: "http://127.0.0.1:8001" } }) }), { uid: 0, env }],
    [
      "a CA",
      filesOf({ [PATH]: config({ cluster: { "certificate-authority-data": base64(ca.cert) } }) }),
      { uid: 0, env },
    ],
  ])("is used with %s", async (_what, files, caller) => {
    expect((await kubeconfigAccess(PATH, files, caller)).from).toBe(PATH);
  });
});

describe("a kubeconfig", () => {
  test("may have embedded certificates", async () => {
    const text = config({
      cluster: { "certificate-authority-data": base64(ca.cert) },
      user: { "client-certificate-data": base64(admin.cert), "client-key-data": base64(admin.key) },
    });

    const access = await accessOf(filesOf({ [PATH]: text }));

    expect(access.server.href).toBe("https://10.0.0.1:6443/");
    expect(access.tls).toEqual({ ca: ca.cert, cert: admin.cert, key: admin.key, insecure: false });
    expect(access.certificate?.node).toBeUndefined();
    expect(access.certificate?.expiresAt.getTime()).toBeGreaterThan(Date.now());
  });

  test("may name certificate files relative to its own directory; one file may contain both", async () => {
    const text = `
apiVersion: v1
kind: Config
preferences: {}
current-context: default
clusters:
- name: local
  cluster:
    server: https://127.0.0.1:6443
    certificate-authority: server-ca.crt
contexts:
- name: default
  context: {cluster: local, namespace: default, user: user}
users:
- name: user
  user:
    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem
    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem
`;
    const both = `${kubelet.cert}${kubelet.key}`;
    const files = {
      [PATH]: text,
      "/etc/kubernetes/server-ca.crt": ca.cert,
      "/var/lib/kubelet/pki/kubelet-client-current.pem": both,
    };

    const access = await accessOf(filesOf(files));

    expect(access.tls).toEqual({ ca: ca.cert, cert: both, key: both, insecure: false });
    expect(access.certificate?.node).toBe("edge-7.lan");
  });

  test.each([
    ["a token", { token: "abc" }, {}, "abc"],
    ["a token file, which is the one that is renewed", { token: "old", tokenFile: "/t" }, { "/t": "new\n" }, "new"],
    ["neither", {}, {}, undefined],
    ["an empty token", { token: "" }, {}, undefined],
  ])("may have %s", async (_what, user, files, token) => {
    const access = await accessOf(filesOf({ [PATH]: config({ user }), ...files }));

    expect(access.token).toBe(token);
  });

  test("may disable verification, and expect another server name", async () => {
    const cluster = { "insecure-skip-tls-verify": true, "tls-server-name": "api.lab" };

    const { tls } = await accessOf(filesOf({ [PATH]: config({ cluster }) }));

    expect(tls).toEqual({ insecure: true, serverName: "api.lab" });
  });
});

describe("an unusable kubeconfig reports the reason", () => {
  const cert = { "client-certificate-data": base64(admin.cert), "client-key-data": base64(admin.key) };
  test.each<[string, string | FileText | undefined, RegExp]>([
    ["a missing file", undefined, /there is no kubeconfig \/etc\/kubernetes\/kubelet\.conf/],
    ["an unreadable file", { kind: "refused", reason: "could not be read (EACCES)" }, /EACCES/],
    ["an empty file", "", /is no kubeconfig/],
    ["a list", "- a\n- b\n", /names no current-context/],
    ["broken YAML", "a: [1\nb: }", /is not YAML: .* at line \d/],
    ["binary data", "\u0000\u0001\u0002", /cannot be used/],
    ["a torn file", config().slice(0, 120), /cannot be used/],
    ["no current-context", config({ rest: { "current-context": "" } }), /names no current-context/],
    ["a context that does not exist", config({ rest: { contexts: null } }), /"here" is not among its contexts/],
    ["a cluster that does not exist", config({ rest: { clusters: [] } }), /no cluster "lab"/],
    ["a user that does not exist", config({ rest: { users: [] } }), /no user "me"/],
    ["clusters of a wrong type", config({ rest: { clusters: "lab" } }), /at clusters, expected/],
    ["no server", config({ cluster: { server: null } }), /has no server/],
    ["an invalid server address", config({ cluster: { server: "ftp://x" } }), /"ftp:\/\/x" is no http\(s\) address/],
    [
      "an exec credential plugin",
      config({ user: { exec: { command: "aws" } } }),
      /the program "aws" \(exec\), which unghost does not run/,
    ],
    [
      "an auth-provider",
      config({ user: { "auth-provider": { name: "gcp" } } }),
      /auth-provider, which is not supported/,
    ],
    [
      "a password",
      config({ user: { username: "me", password: "x" } }),
      /user name and password, which is not supported/,
    ],
    ["impersonation", config({ user: { as: "root" } }), /impersonates "root"/],
    ["a proxy", config({ cluster: { "proxy-url": "http://p" } }), /proxy-url/],
    [
      "a certificate without its key",
      config({ user: { ...cert, "client-key-data": null } }),
      /certificate without its key/,
    ],
    [
      "a key without its certificate",
      config({ user: { ...cert, "client-certificate-data": "" } }),
      /key without its certificate/,
    ],
    ["data that is not PEM", config({ user: { ...cert, "client-key-data": "!!" } }), /client-key-data is no PEM/],
    [
      "a file that is not PEM",
      config({ cluster: { "certificate-authority": PATH } }),
      /certificate-authority .* holds no PEM/,
    ],
    [
      "a missing certificate file",
      config({ cluster: { "certificate-authority": "x.crt" } }),
      /\/etc\/kubernetes\/x\.crt is missing/,
    ],
    ["a missing token file", config({ user: { tokenFile: "/t" } }), /tokenFile \/t is missing/],
    [
      "a PEM that is not a certificate",
      config({
        user: {
          ...cert,
          "client-certificate-data": base64("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        },
      }),
      /is not a certificate/,
    ],
  ])("%s", async (_what, content, expected) => {
    const reading = accessOf(filesOf(content === undefined ? {} : { [PATH]: content }));

    await expect(reading).rejects.toMatchObject({ kind: "unusable", message: expect.stringMatching(expected) });
  });
});
