import { execFileSync } from "node:child_process";
import { chownSync, mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
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

describe("a kubeconfig without a CA", () => {
  const dir = tempDir();
  const authority = makeAuthority(dir.path, "enemy");

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
