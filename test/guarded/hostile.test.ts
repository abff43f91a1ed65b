import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { CommandResult } from "../../lab/command.ts";
import type { LabNode } from "../../lab/node.ts";
import { GUARD_BIN_DIR, GUARD_HOME, GUARD_LAUNCHER, GUARD_STATE_DIR } from "../../src/guard/home.ts";
import { installGuard } from "../e2e/guarded-node.ts";
import { start } from "../lab/real-node.ts";

const PLUGIN = "recorder";
const RECORDED = "/var/lib/recorded";

/** Records what it was given. It leaves a process behind if its configuration says so. */
const RECORDER = `#!/bin/sh
config=$(cat)
{ echo "$CNI_COMMAND [$CNI_CONTAINERID] [$CNI_IFNAME] \${#config}"; } >>${RECORDED}
case "$config" in
  *holds*) sleep 1000000000 & ;;
esac
echo '{"cniVersion":"1.0.0"}'
`;

async function nodeWithRecorder(): Promise<LabNode> {
  const node = await start();
  await installGuard(node);
  await node.writeFile(`/opt/cni/bin/${PLUGIN}`, RECORDER, 0o755);
  await node.check(["ln", "-s", GUARD_LAUNCHER, `${GUARD_BIN_DIR}/${PLUGIN}`]);
  return node;
}

interface CniCall {
  readonly command?: string;
  readonly container?: string;
  readonly ifname?: string;
  readonly config?: string;
}

function environment({ command = "ADD", container = "web", ifname = "eth0" }: CniCall = {}) {
  const path = `${GUARD_BIN_DIR}:/opt/cni/bin`;
  return { CNI_COMMAND: command, CNI_CONTAINERID: container, CNI_IFNAME: ifname, CNI_PATH: path };
}

function call(node: LabNode, given: CniCall = {}): Promise<CommandResult> {
  const config = given.config ?? '{"name":"net"}';
  return node.exec([`${GUARD_BIN_DIR}/${PLUGIN}`], { env: environment(given), stdin: config });
}

/** Since the last time. */
function recorded(node: LabNode): readonly string[] {
  return readFileSync(node.path(RECORDED), "utf8").split("\n").filter(Boolean);
}

function attachments(node: LabNode): readonly string[] {
  return readdirSync(node.path(`${GUARD_STATE_DIR}/attachments`));
}

test("hostile ids, interfaces and configurations reach the plugin as they are, and no file of the guard", async () => {
  const node = await nodeWithRecorder();
  const long = "x".repeat(300);
  const calls: readonly CniCall[] = [
    { container: "../../../../etc/evil" },
    { container: "a@b@c" },
    { container: ".hidden" },
    { container: "" },
    { container: long },
    { ifname: "../../evil" },
    { ifname: "eth0@other" },
    { ifname: "%n%s" },
    { config: "x".repeat(64 * 1024 * 1024) },
  ];
  for (const one of calls) expect(await call(node, one)).toMatchObject({ code: 0 });

  expect(recorded(node)).toEqual(
    calls.map(
      ({ container = "web", ifname = "eth0", config = '{"name":"net"}' }) =>
        `ADD [${container}] [${ifname}] ${config.length}`,
    ),
  );
  expect(attachments(node)).toEqual([]);
  expect(existsSync(node.path("/etc/evil"))).toBe(false);
  await call(node);
  expect(attachments(node)).toEqual([`web@eth0@${PLUGIN}`]);
});

test("a process that the plugin leaves behind with its pipes does not delay the answer", async () => {
  const node = await nodeWithRecorder();

  for (const command of ["ADD", "DEL"]) {
    expect(await call(node, { command, config: '{"name":"holds"}' })).toMatchObject({
      code: 0,
      stdout: '{"cniVersion":"1.0.0"}\n',
    });
  }
  expect(attachments(node)).toEqual([]);
});

test.each([
  { what: "is a link", spoil: "mv $1 /var/lib/elsewhere && ln -s /var/lib/elsewhere $1" },
  { what: "belongs to another user", spoil: "chown 1 $1" },
  { what: "is writable by others", spoil: "chmod 777 $1" },
])("a directory of records that $what is not used, and the plugin is called", async ({ spoil }) => {
  const node = await nodeWithRecorder();
  const dir = `${GUARD_STATE_DIR}/attachments`;
  await node.check(["sh", "-c", spoil, "sh", dir]);

  expect(await call(node)).toMatchObject({ code: 0 });

  expect(recorded(node)).toHaveLength(1);
  expect(await node.check(["sh", "-c", `ls ${dir}/`])).toBe("");
  const keep = await node.exec([`${GUARD_HOME}/unghost`, "cni-call", "keep", GUARD_STATE_DIR]);
  expect(keep).toMatchObject({ code: 1, stderr: expect.stringContaining("its state is not used") });
  const install = await node.exec([`${GUARD_HOME}/unghost`, "cni", "install", "--yes"]);
  expect(install).toMatchObject({ code: 1, stderr: expect.stringContaining(dir) });
});

test("a launcher that an upgrade replaces while it starts runs the plugin", async () => {
  const node = await nodeWithRecorder();
  const replace = (command: string) => `exec 9<${GUARD_LAUNCHER}; ${command}; exec -a "$0" /proc/self/fd/9`;
  for (const command of [
    `cp -p ${GUARD_LAUNCHER} ${GUARD_HOME}/new; mv ${GUARD_HOME}/new ${GUARD_LAUNCHER}`,
    `rm -r ${GUARD_HOME}`,
  ]) {
    const words = ["bash", "-c", replace(command), `${GUARD_BIN_DIR}/${PLUGIN}`];
    expect(await node.exec(words, { env: environment(), stdin: "{}" })).toMatchObject({
      code: 0,
      stdout: '{"cniVersion":"1.0.0"}\n',
    });
  }
});
