import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { run } from "../../lab/command.ts";
import { makeAuthority } from "../../lab/stub-api/certificates.ts";
import { tempDir } from "../support/temp-dir.ts";
import { problemsOf, reportOf, simulatedNode, UNGHOST, unghost } from "./unghost.ts";

const IS_ROOT = process.geteuid?.() === 0;

describe("a crictl.yaml that is no ordinary file of root", () => {
  const makers: readonly [string, (path: string) => void, RegExp][] = [
    ["a pipe", (path) => execFileSync("mkfifo", [path]), /it is a pipe, socket or device/],
    ["a sparse file of 2 GB", (path) => sparse(path), /it is larger than/],
  ];

  test.each(makers)("%s: scan and boot end at once and name it", async (_what, make, expected) => {
    const { root } = await simulatedNode();
    mkdirSync(`${root}/etc`, { recursive: true });
    make(`${root}/etc/crictl.yaml`);
    const guard = { timeoutMs: 10_000 };

    const scan = await unghost(["scan", "--host-root", root, "--no-kube", "-o", "json"], guard);
    const boot = await unghost(["boot", "--host-root", root, "--no-kube"], guard);

    expect([scan.timedOut, scan.code, boot.timedOut, boot.code]).toEqual([false, 2, false, 0]);
    expect(problemsOf(reportOf(scan)).join("\n")).toMatch(expected);
  });

  test.skipIf(!IS_ROOT)("of another user: is not opened (needs root, to give the file away)", async () => {
    const { root } = await simulatedNode();
    mkdirSync(`${root}/etc`, { recursive: true });
    execFileSync("mkfifo", [`${root}/etc/crictl.yaml`]);
    chownSync(`${root}/etc/crictl.yaml`, 1000, 1000);

    const scan = await unghost(["scan", "--host-root", root, "--no-kube", "-o", "json"], { timeoutMs: 10_000 });

    expect(problemsOf(reportOf(scan)).join("\n")).toMatch(/crictl\.yaml is owned by uid 1000, not by root/);
  });
});

function sparse(path: string): void {
  writeFileSync(path, "");
  truncateSync(path, 2 ** 31);
}

describe.skipIf(!IS_ROOT)("a configuration file (needs root, to give it away)", () => {
  const STATE = "stateDir: /tmp/of-an-enemy\n";
  let dir: ReturnType<typeof tempDir>;

  beforeEach(() => {
    dir = tempDir();
    mkdirSync(dir.join("etc"), { recursive: true });
    writeFileSync(dir.join("etc/config.yaml"), STATE, { mode: 0o644 });
  });

  afterEach(() => dir.remove());

  const enemies: readonly [string, () => void, RegExp][] = [
    ["of another user", () => chownSync(dir.join("etc/config.yaml"), 1000, 1000), /config\.yaml is owned by uid 1000/],
    [
      "that others may write",
      () => chmodSync(dir.join("etc/config.yaml"), 0o666),
      /config\.yaml can be written by users/,
    ],
    ["in another user's directory", () => chownSync(dir.join("etc"), 1000, 1000), /\/etc is owned by uid 1000/],
    ["in a directory that others may write", () => chmodSync(dir.join("etc"), 0o777), /\/etc can be written by users/],
    ["behind another user's link", linkOfAnother, /config\.yaml is owned by uid 1000/],
    ["that is another user's pipe", pipeOfAnother, /config\.yaml is owned by uid 1000/],
  ];

  function linkOfAnother(): void {
    renameSync(dir.join("etc/config.yaml"), dir.join("etc/real.yaml"));
    symlinkSync("real.yaml", dir.join("etc/config.yaml"));
    lchownSync(dir.join("etc/config.yaml"), 1000, 1000);
  }

  function pipeOfAnother(): void {
    rmSync(dir.join("etc/config.yaml"));
    execFileSync("mkfifo", [dir.join("etc/config.yaml")]);
    chownSync(dir.join("etc/config.yaml"), 1000, 1000);
  }

  test("of root is used", async () => {
    const { code, stdout } = await unghost(["config", "--config", dir.join("etc/config.yaml")]);

    expect([code, stdout]).toEqual([0, expect.stringContaining("stateDir: /tmp/of-an-enemy")]);
  });

  test.each(enemies)("%s is not used, by flag or by environment", async (_what, make, expected) => {
    make();
    const path = dir.join("etc/config.yaml");

    const byFlag = await unghost(["config", "--config", path], { timeoutMs: 10_000 });
    const byEnvironment = await unghost(["scan", "--no-kube"], { env: { UNGHOST_CONFIG: path }, timeoutMs: 10_000 });

    for (const { code, stdout, stderr } of [byFlag, byEnvironment]) {
      expect([code, stdout]).toEqual([64, ""]);
      expect(stderr).toMatch(/^unghost: the configuration file .* is not used: /);
      expect(stderr).toMatch(expected);
    }
  });

  test("of a ConfigMap, whose directory is writable by its mode and mounted read-only, is used in a pod", async () => {
    const path = dir.join("etc");
    const mounted = `mount -t tmpfs -o mode=777 none ${path} && mkdir ${path}/..1 && printf '${STATE.trim()}' >${path}/..1/config.yaml &&
      ln -s ..1 ${path}/..data && ln -s ..data/config.yaml ${path}/config.yaml`;
    const show = `${UNGHOST} config --config ${path}/config.yaml`;
    const pod = { KUBERNETES_SERVICE_HOST: "10.0.0.1" };
    const inOwnMounts = (script: string, env: NodeJS.ProcessEnv) =>
      run(["unshare", "--mount", "sh", "-c", script], { env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...env } });

    const readOnly = await inOwnMounts(`${mounted} && mount -o remount,ro ${path} && ${show}`, pod);
    const onHost = await inOwnMounts(`${mounted} && mount -o remount,ro ${path} && ${show}`, {});
    const writable = await inOwnMounts(`${mounted} && ${show}`, pod);

    expect([readOnly.code, readOnly.stdout]).toEqual([0, expect.stringContaining("stateDir: /tmp/of-an-enemy")]);
    expect([onHost.code, writable.code]).toEqual([64, 64]);
  });
});

describe("a kubeconfig without a CA", () => {
  const dir = tempDir();
  const authority = makeAuthority(dir.path, "enemy");
  afterAll(() => dir.remove());

  /** An API server with a certificate that only the caller's environment makes trusted. */
  async function enemy(): Promise<{ readonly kubeconfig: string; readonly tokens: readonly string[] }> {
    const tokens: string[] = [];
    const { cert, key } = authority.issue("/CN=api", { san: "IP:127.0.0.1" });
    const server = createServer({ cert, key }, (request, response) => {
      tokens.push(request.headers.authorization ?? "");
      response.end("{}");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const kubeconfig = dir.join("kubeconfig");
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const config = {
      "current-context": "x",
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      clusters: [{ name: "c", cluster: { server: url } }],
      users: [{ name: "u", user: { token: "secret-of-root" } }],
    };
    writeFileSync(kubeconfig, JSON.stringify(config));
    return { kubeconfig, tokens };
  }

  /** The shipped engine, and the one that the sources run on. */
  const engines: readonly [string, readonly string[]][] = [
    ["executable", [UNGHOST]],
    ["Node", [process.execPath, "src/main.ts"]],
  ];

  test
    .skipIf(!IS_ROOT)
    .each(
      engines.flatMap(([engine, command]) =>
        ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"].map((variable) => ({ engine, command, variable })),
      ),
    )(
    "$engine: root's token goes to no server that $variable vouches for (needs root)",
    async ({ command, variable }) => {
      const { where } = await simulatedNode();
      const { kubeconfig, tokens } = await enemy();
      writeFileSync(dir.join("ca.pem"), authority.cert);

      const scan = await run([...command, "scan", ...where, "--kubeconfig", kubeconfig, "-o", "json"], {
        env: { PATH: "/usr/bin:/bin", [variable]: dir.join("ca.pem") },
        timeoutMs: 60_000,
      });

      expect(tokens).toEqual([]);
      expect(scan.stdout).toContain(`${variable} in the environment would decide which servers are trusted`);
    },
  );
});
