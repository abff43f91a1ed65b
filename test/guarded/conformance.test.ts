import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { CommandResult } from "../../lab/command.ts";
import type { LabNode } from "../../lab/node.ts";
import { goBuild } from "../../lab/tools.ts";
import { installGuard } from "../e2e/guarded-node.ts";
import { start } from "../lab/real-node.ts";

const cnitool = await goBuild("cnitool", "github.com/containernetworking/cni", "v1.3.1", ["cnitool"]);
const [toolDir, why] = typeof cnitool === "string" ? [cnitool, ""] : ["", `: skipped, ${cnitool.reason}`];

/** Records what it is given, and answers by the name of the network. */
const RECORDER = `#!/bin/sh
{ env | grep -E '^(CNI_|TRACE)' | grep -v '^CNI_PATH=' | sort; cat; echo "$0 $#"; } >>/var/lib/recorded
case "$CNI_COMMAND $(tail -n 2 /var/lib/recorded)" in
  "VERSION "*) echo '{"cniVersion":"1.1.0","supportedVersions":["1.0.0","1.1.0"]}' ;;
  "CHECK "*) echo "not as it was" >&2; echo '{"cniVersion":"1.1.0","code":101,"msg":"checked"}'; exit 3 ;;
  "STATUS "*) echo '{"cniVersion":"1.1.0","code":50,"msg":"not now"}'; exit 1 ;;
  "ADD "*refuse*) echo '{"cniVersion":"1.1.0","code":7,"msg":"refused","details":"\\u00e4 \\n"}'; exit 1 ;;
  "ADD "*kill*) kill -9 $$ ;;
  "ADD "*) printf '{"cniVersion":"1.1.0",\\n\\n "interfaces":[{"name":"eth0"}],"ips":[],"dns":{}}' ;;
esac
`;

const STEPS = ["add", "check", "status", "del", "del", "gc", "add", "del"] as const;

function networks() {
  const bridge = { type: "bridge", bridge: "cni9", ipam: { type: "host-local", subnet: "10.99.0.0/24" } };
  const of = (name: string, plugins: readonly object[]) => ({ cniVersion: "1.1.0", name, plugins });
  return [
    { ...of("real", [bridge, { type: "tuning" }]), cniVersion: "1.0.0" },
    of("recorded", [
      { type: "recorder", own: { deep: [1, "\u00e4"] } },
      { type: "recorder", second: true },
    ]),
    of("refuse", [{ type: "recorder" }, { type: "recorder", second: true }]),
    of("kill", [{ type: "recorder" }]),
    of("missing", [{ type: "nowhere" }]),
  ];
}

test.skipIf(why !== "")(`the same calls have the same results with and without the guard${why}`, async () => {
  const [plain, guarded] = [await start(), await start()];
  await installGuard(guarded);
  const [without, behind] = [
    await sequence(plain, "/opt/cni/bin"),
    await sequence(guarded, "/opt/unghost/cni/bin:/opt/cni/bin"),
  ];

  expect(without.seen[0]).toMatchObject({ code: 0 });
  expect(without.recorded).toContain("TRACEPARENT=00-1-2-03");
  expect(behind).toEqual(without);
});

async function sequence(node: LabNode, path: string) {
  await node.writeFile("/opt/cni/bin/recorder", RECORDER, 0o755);
  await node.check(["/usr/sbin/ip", "netns", "add", "conform"]);
  // The node has its entries from the installation: those of later plugins come with the agent.
  if (path.includes(":")) await node.check(["ln", "-s", "/opt/unghost/cni/launcher", "/opt/unghost/cni/bin/recorder"]);
  if (path.includes(":")) await node.check(["ln", "-s", "/opt/unghost/cni/launcher", "/opt/unghost/cni/bin/nowhere"]);
  const seen: unknown[] = [];
  for (const network of networks()) {
    await node.writeFile(`/etc/conform/${network.name}.conflist`, JSON.stringify(network));
    // The DEL of a plugin that is not installed is one of the guard's own decisions.
    for (const step of network.name === "missing" ? (["add", "check"] as const) : STEPS) {
      const env = { CNI_PATH: path, NETCONFPATH: "/etc/conform", TRACEPARENT: "00-1-2-03", CNI_CONTAINERID: "x" };
      const tool = join(toolDir, "cnitool");
      seen.push(outcome(await node.exec([tool, step, network.name, "/var/run/netns/conform"], { env })));
      seen.push(filesIn(node, "/var/lib/cni/results"), filesIn(node, "/var/lib/cni/networks/real"));
    }
  }
  return { seen, recorded: readFileSync(node.path("/var/lib/recorded"), "utf8") };
}

/** Without the random addresses of interfaces. */
function outcome({ code, stdout, stderr }: CommandResult) {
  const plain = (text: string): string =>
    text
      .replace(/[0-9a-f]{2}(?::[0-9a-f]{2}){5}/g, "MAC")
      .replace(/veth[0-9a-f]+/g, "veth")
      .replaceAll("/opt/unghost/cni/bin:", "");
  return { code, stdout: plain(stdout), stderr: plain(stderr) };
}

function filesIn(node: LabNode, dir: string): readonly string[] {
  const path = node.path(dir);
  if (!existsSync(path)) return [];
  return readdirSync(path).map((name) => `${name}: ${readFileSync(join(path, name)).length}`);
}
