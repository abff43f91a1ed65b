import { mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type SimulatedNode, startSimulatedNode } from "../../lab/simulated/node.ts";
import { startSimulated } from "../../lab/simulated/runtime.ts";
import { ownProcess } from "../support/process-owner.ts";
import { listenRaw } from "../support/socket-servers.ts";
import { writeWithParents } from "../support/temp-dir.ts";
import { problemsOf, reportOf, simulatedNode, unghost } from "./unghost.ts";

const CONTAINERD = "/run/containerd/containerd.sock";
const CRIO = "/run/crio/crio.sock";

/** A second runtime, with another version. */
async function secondRuntime(node: SimulatedNode, place: string): Promise<void> {
  const socket = join(node.root, place);
  mkdirSync(dirname(socket), { recursive: true });
  const runtime = await startSimulated({ socket, containerd: false, version: "second" });
  onTestFinished(() => runtime.close());
}

function write(node: SimulatedNode, path: string, content: string): void {
  writeWithParents(join(node.root, path), content);
}

/** The parts of /proc that show a process and its arguments. */
function runProcess(node: SimulatedNode, pid: number, argv: readonly string[]): void {
  const name = argv[0]?.split("/").at(-1) ?? "";
  const stat = `${pid} (${name}) S 1 ${pid} ${pid} 0 -1 4194560 ${"0 ".repeat(12)}10 0 0\n`;
  for (const [file, content] of Object.entries({
    stat,
    cmdline: argv.map((one) => `${one}\0`).join(""),
    environ: "",
    cgroup: "0::/system.slice/kubelet.service\n",
  })) {
    write(node, `/proc/${pid}/${file}`, content);
  }
  mkdirSync(join(node.root, `/proc/${pid}/ns`), { recursive: true });
  symlinkSync("net:[4026531840]", join(node.root, `/proc/${pid}/ns/net`));
  ownProcess(node.root, pid);
}

async function scanned(node: { readonly where: readonly string[] }, env: Record<string, string> = {}) {
  const ran = await unghost(["scan", "-o", "json", ...node.where], { env });
  return { code: ran.code, report: reportOf(ran) };
}

describe("an invalid runtime socket", () => {
  test("a regular file is reported as such", async () => {
    const node = await simulatedNode();
    write(node, "/run/plain", "");

    const ran = await unghost(["scan", "-o", "json", ...node.where, "--runtime-endpoint", `${node.root}/run/plain`]);

    expect(ran.code).toBe(2);
    expect(problemsOf(reportOf(ran))).toEqual([
      expect.stringMatching(/^cri: .*\/run\/plain is not a socket \| Name the runtime's socket/),
    ]);
  });

  test.each([["json"], ["table"]])("one that accepts and never answers times out (%s)", async (output) => {
    const node = await simulatedNode();
    const mute = await listenRaw(join(node.root, "run/mute.sock"), () => undefined);
    onTestFinished(() => mute.close());
    const endpoint = `unix://${node.root}/run/mute.sock`;
    const args = ["scan", "-o", output, ...node.where, "--runtime-endpoint", endpoint, "--timeout", "500ms"];

    const ran = await unghost(args);

    expect(ran.timedOut).toBe(false);
    expect(ran.code).toBe(2);
    expect(ran.stdout.replace(/\s+/g, " ")).toMatch(
      /did not answer in time.*The runtime behind .*mute\.sock does not answer in time/,
    );
  });

  test("one that accepts calls and never answers times out", async () => {
    const node = await simulatedNode();
    node.script({ mode: "mute" });
    onTestFinished(() => node.script({ mode: "serving" }));

    const ran = await unghost(["scan", "-o", "json", ...node.where, "--timeout", "500ms"]);

    expect(ran.timedOut).toBe(false);
    expect(ran.code).toBe(2);
    expect(problemsOf(reportOf(ran))).toEqual([
      expect.stringMatching(/^cri: .*did not answer in time \| .*does not answer in time/),
    ]);
  });

  test("one that does not speak gRPC is reported as such", async () => {
    const node = await simulatedNode();
    const other = await listenRaw(join(node.root, "run/http.sock"), (socket) => socket.end("HTTP/1.1 200 OK\r\n\r\n"));
    onTestFinished(() => other.close());

    const ran = await unghost([
      "scan",
      "-o",
      "json",
      ...node.where,
      "--runtime-endpoint",
      `${node.root}/run/http.sock`,
    ]);

    expect(ran.code).toBe(2);
    expect(problemsOf(reportOf(ran))).toHaveLength(1);
  });
});

describe("two runtimes that answer", () => {
  test("without a deciding setting: both are listed, exit 2", async () => {
    const node = await simulatedNode();
    await secondRuntime(node, CRIO);

    const { code, report } = await scanned(node);

    expect(code).toBe(2);
    const [problem = ""] = problemsOf(report);
    expect(problem).toContain(node.root + CONTAINERD);
    expect(problem).toContain(node.root + CRIO);
    expect(problem).toContain("Name one with --runtime-endpoint");
  });

  test.each<[string, (node: SimulatedNode) => void]>([
    ["/etc/crictl.yaml", (node) => write(node, "/etc/crictl.yaml", `runtime-endpoint: "unix://${CRIO}"\ntimeout: 2\n`)],
    [
      "kubeadm's flags for kubelet",
      (node) =>
        write(
          node,
          "/var/lib/kubelet/kubeadm-flags.env",
          `KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix://${CRIO} --pod-infra-container-image=x"\n`,
        ),
    ],
    [
      "kubelet's configuration",
      (node) =>
        write(
          node,
          "/var/lib/kubelet/config.yaml",
          `kind: KubeletConfiguration\ncontainerRuntimeEndpoint: unix://${CRIO}\n`,
        ),
    ],
    [
      "the running kubelet's flag",
      (node) => runProcess(node, 200, ["/usr/bin/kubelet", `--container-runtime-endpoint=unix:///var${CRIO}`]),
    ],
    [
      "the configuration file of the running kubelet",
      (node) => {
        write(node, "/etc/kubelet.yaml", `containerRuntimeEndpoint: "unix://${CRIO}"\n`);
        runProcess(node, 200, ["/usr/bin/kubelet", "--config", "/etc/kubelet.yaml"]);
      },
    ],
  ])("%s decides", async (_, decide) => {
    const node = await simulatedNode();
    await secondRuntime(node, CRIO);
    decide(node);

    const { code, report } = await scanned(node);

    expect(report.runtime).toMatchObject({ endpoint: `unix://${node.root}${CRIO}`, version: "second" });
    expect(code).toBe(0);
  });

  test("a running k3s decides for its own runtime", async () => {
    const node = await simulatedNode();
    await secondRuntime(node, "/run/k3s/containerd/containerd.sock");
    runProcess(node, 200, ["/usr/local/bin/k3s-server", "server"]);

    const { report } = await scanned(node);

    expect(report.runtime.version).toBe("second");
  });

  test("two paths to one socket are one runtime", async () => {
    const node = await simulatedNode();
    mkdirSync(join(node.root, "run/k3s/containerd"), { recursive: true });
    symlinkSync(join(node.root, CONTAINERD), join(node.root, "run/k3s/containerd/containerd.sock"));

    const { code, report } = await scanned(node);

    expect(report.runtime.reachable).toBe(true);
    expect(code).toBe(0);
  });
});

describe("endpoint precedence", () => {
  test("flag, then environment, then crictl's file, then kubelet", async () => {
    const node = await simulatedNode();
    await secondRuntime(node, CRIO);
    const containerd = `unix://${node.root}${CONTAINERD}`;
    const crio = `unix://${node.root}${CRIO}`;
    write(node, "/var/lib/kubelet/config.yaml", `containerRuntimeEndpoint: unix:///run/nowhere.sock\n`);
    write(node, "/etc/crictl.yaml", `runtime-endpoint: unix://${CRIO}\n`);

    expect((await scanned(node)).report.runtime.endpoint).toBe(crio);
    expect((await scanned(node, { CONTAINER_RUNTIME_ENDPOINT: containerd })).report.runtime.endpoint).toBe(containerd);
    const both = { CONTAINER_RUNTIME_ENDPOINT: containerd, UNGHOST_RUNTIME_ENDPOINT: crio };
    expect((await scanned(node, both)).report.runtime.endpoint).toBe(crio);
    const flagged = await unghost(["scan", "-o", "json", ...node.where, "--runtime-endpoint", containerd], {
      env: { UNGHOST_RUNTIME_ENDPOINT: crio },
    });
    expect(reportOf(flagged).runtime.endpoint).toBe(containerd);
  });

  test("an empty endpoint in crictl's file is ignored", async () => {
    const node = await startSimulatedNode();
    onTestFinished(() => node.close());
    write(node, "/etc/crictl.yaml", 'runtime-endpoint: ""\nimage-endpoint: unix:///run/image.sock\ntimeout: 0\n');

    const ran = await unghost(["scan", "-o", "json", "--host-root", node.root]);

    expect(reportOf(ran).runtime.endpoint).toBe(`unix://${node.root}${CONTAINERD}`);
  });
});
