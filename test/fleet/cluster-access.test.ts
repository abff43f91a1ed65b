import { chmodSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { clusterOf, fleetRig, kubeconfigOf } from "./fleet-rig.ts";

const HEALTHY = clusterOf();

async function rigWith(user?: object) {
  const rig = await fleetRig(HEALTHY);
  const file = (name: string, content: object): string => {
    const path = join(rig.dir, name);
    writeFileSync(path, JSON.stringify(content));
    return path;
  };
  const own = file("own", kubeconfigOf({ server: rig.server.url, ca: rig.ca.cert, user }));
  return {
    ...rig,
    file,
    own,
    scan: (...args: readonly string[]) => rig.run(["fleet", "scan", `--kubeconfig=${own}`, ...args]),
  };
}

describe("credentials of a fleet command", () => {
  test("are a token of the kubeconfig", async () => {
    const { scan, server } = await rigWith();

    expect(await scan()).toMatchObject({ code: 0 });
    expect(server.asked[0]?.authorization).toBe("Bearer secret");
  });

  test("are a client certificate", async () => {
    const rig = await rigWith();
    const { cert, key } = rig.ca.issue("/CN=jane");
    const base64 = (text: string) => Buffer.from(text).toString("base64");
    const user = { "client-certificate-data": base64(cert), "client-key-data": base64(key) };
    const path = rig.file("cert", kubeconfigOf({ server: rig.server.url, ca: rig.ca.cert, user }));

    expect(await rig.run(["fleet", "scan", `--kubeconfig=${path}`])).toMatchObject({ code: 0 });
    expect(rig.server.asked[0]?.client).toBe("jane");
  });

  test("are what an exec credential plugin returns", async () => {
    const rig = await rigWith();
    const plugin = join(rig.dir, "get-token");
    const credential = {
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      status: { token: "from-plugin" },
    };
    writeFileSync(plugin, `#!/bin/sh\n[ -n "$KUBERNETES_EXEC_INFO" ] && echo '${JSON.stringify(credential)}'\n`);
    chmodSync(plugin, 0o755);
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: plugin, interactiveMode: "Never" };
    const path = rig.file("exec", kubeconfigOf({ server: rig.server.url, ca: rig.ca.cert, user: { exec } }));

    expect(await rig.run(["fleet", "scan", `--kubeconfig=${path}`])).toMatchObject({ code: 0 });
    expect(rig.server.asked[0]?.authorization).toBe("Bearer from-plugin");
  });

  test("of a plugin that fails or is missing are one sentence", async () => {
    const rig = await rigWith();
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: join(rig.dir, "no-such-plugin") };
    const path = rig.file("exec", kubeconfigOf({ server: rig.server.url, ca: rig.ca.cert, user: { exec } }));

    expect(await rig.run(["fleet", "scan", `--kubeconfig=${path}`])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^unghost: --kubeconfig: getting credentials failed: .*no-such-plugin.*\n$/),
    });
  });

  test("a token is not sent to a server whose certificate is not verified", async () => {
    const rig = await rigWith();
    const config = kubeconfigOf({ server: rig.server.url, ca: "" });
    const cluster = { server: rig.server.url, "insecure-skip-tls-verify": true };
    const path = rig.file("insecure", { ...config, clusters: [{ name: "lab", cluster }] });

    await rig.run(["fleet", "scan", `--kubeconfig=${path}`]);

    expect(rig.server.asked.map(({ authorization }) => authorization)).toEqual([undefined, undefined, undefined]);
  });

  test("--as and --as-group impersonate", async () => {
    const headers: unknown[] = [];
    const { run, kubeconfig } = await fleetRig((asked) => {
      headers.push(asked.impersonated);
      return { body: HEALTHY[asked.path] };
    });

    await run(["fleet", "scan", `--kubeconfig=${kubeconfig}`, "--as=jane", "--as-group=ops,dev"]);

    expect(headers[0]).toEqual({ user: "jane", groups: "ops, dev" });
    expect(await run(["fleet", "scan", `--kubeconfig=${kubeconfig}`, "--as-group=ops"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--as-group needs --as"),
    });
  });
});

describe("choosing the cluster of a fleet command", () => {
  test("merges the files of KUBECONFIG as kubectl does: the first entry of a name counts, missing files are skipped", async () => {
    const rig = await rigWith();
    const wrong = { server: "https://127.0.0.1:1", ca: rig.ca.cert };
    const first = rig.file("first", {
      apiVersion: "v1",
      kind: "Config",
      contexts: [{ name: "mixed", context: { cluster: "lab", user: "other" } }],
    });
    const second = rig.file("second", kubeconfigOf({ server: rig.server.url, ca: rig.ca.cert, current: "mixed" }));
    const third = rig.file("third", kubeconfigOf({ ...wrong }));
    const fourth = rig.file("fourth", kubeconfigOf({ ...wrong, name: "other", user: { token: "other-token" } }));
    const KUBECONFIG = [first, join(rig.dir, "missing"), second, third, fourth].join(":");

    expect(await rig.run(["fleet", "scan"], { KUBECONFIG })).toMatchObject({ code: 0 });
    expect(rig.server.asked[0]?.authorization).toBe("Bearer other-token");
  });

  test("--context chooses another context", async () => {
    const rig = await rigWith();
    const second = rig.file(
      "second",
      kubeconfigOf({ server: rig.server.url, ca: rig.ca.cert, name: "two", current: "none" }),
    );

    expect(await rig.run(["fleet", "scan", `--kubeconfig=${second}`, "--context=two"])).toMatchObject({ code: 0 });
  });

  test.each([
    ["no kubeconfig at all", [], { KUBECONFIG: "/nonexistent/config" }, "none of the files in KUBECONFIG exists"],
    ["a missing file", ["--kubeconfig=/nonexistent/config"], {}, "the kubeconfig /nonexistent/config cannot be used"],
    ["an unknown context", ["--context=prod"], {}, 'there is no context "prod"; choose one with --context: lab'],
  ])("with %s ends with a sentence", async (_title, args, env, message) => {
    const rig = await rigWith();
    const own =
      args.some((arg) => arg.startsWith("--kubeconfig")) || "KUBECONFIG" in env ? [] : [`--kubeconfig=${rig.own}`];

    expect(await rig.run(["fleet", "scan", ...own, ...args], env)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(message),
    });
  });

  test("a server that cannot be reached, or does not answer in time, ends with a sentence", async () => {
    const rig = await rigWith();
    const gone = rig.file("gone", kubeconfigOf({ server: "https://127.0.0.1:1", ca: rig.ca.cert }));
    expect(await rig.run(["fleet", "scan", `--kubeconfig=${gone}`])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("cannot be reached"),
    });

    const silent = await fleetRig(() => () => undefined);
    expect(await silent.fleet("scan", "--request-timeout=200ms")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("did not answer in time"),
    });
    expect(await silent.fleet("scan", "--request-timeout=soon")).toMatchObject({ code: 64 });
  });

  test.each(["proxy-url", "HTTPS_PROXY"])(
    "connects through a proxy that %s names, and verifies the server",
    async (how) => {
      const rig = await rigWith();
      const tunnels: string[] = [];
      const proxy = createServer().on("connect", (request, socket) => {
        tunnels.push(request.url ?? "");
        const { hostname, port } = new URL(rig.server.url);
        const upstream = connect(Number(port), hostname, () => {
          socket.write("HTTP/1.1 200 OK\r\n\r\n");
          upstream.pipe(socket).pipe(upstream);
        });
        for (const end of [socket, upstream]) end.on("error", () => upstream.destroy());
      });
      await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
      onTestFinished(() => proxy.close().closeAllConnections());
      const { port } = proxy.address() as { readonly port: number };
      const url = `http://127.0.0.1:${port}`;
      const server = rig.server.url.replace("127.0.0.1", "cluster.example");
      const config = kubeconfigOf({ server, ca: rig.ca.cert });
      const [{ cluster } = { cluster: {} }] = config.clusters;
      // The stub's certificate is for its address.
      const behind = {
        ...cluster,
        "tls-server-name": "127.0.0.1",
        ...(how === "proxy-url" ? { "proxy-url": url } : {}),
      };
      const path = rig.file("proxied", { ...config, clusters: [{ name: "lab", cluster: behind }] });

      const ran = await rig.run(
        ["fleet", "scan", `--kubeconfig=${path}`],
        how === "proxy-url" ? {} : { HTTPS_PROXY: url },
      );

      expect(ran).toMatchObject({ code: 0 });
      expect(tunnels[0]).toMatch(/^cluster\.example:\d+$/);
    },
  );
});
