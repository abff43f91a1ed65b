import { expect, test } from "vitest";
import { documentedCommands, placeOf } from "../support/documented-commands.ts";
import { HANG_GUARD_MS, systemdNode } from "./systemd-node.ts";

const COMMAND_MS = 120_000;
/** An answer, too: the guard is not in effect before the runtime's next start. */
const ANSWERS = /^unghost cni status/;
/** One after the other as a reader would type them: what ends the installation comes last. */
const LAST = [
  /^unghost install --agent/,
  /^systemctl restart unghost-agent/,

  /^unghost install --dry-run/,
  /^unghost cni uninstall/,
  /^unghost uninstall$/,
  /^unghost uninstall --purge/,
];

const rankOf = (command: string) => LAST.findIndex((last) => last.test(command));
const commands = documentedCommands()
  .filter((one) => one.notRun === undefined && placeOf(one) === "systemd")
  .map(({ command }) => command)
  .toSorted((one, other) => rankOf(one) - rankOf(other));

test(
  "every command of the documents for a host runs as printed on a node with systemd",
  async () => {
    const node = await systemdNode();
    await node.startPods(["web-0"]);
    const failed: string[] = [];

    for (const command of commands) {
      const typed = ["script", "--quiet", "--return", "--command", command, "/dev/null"];
      const env = { PATH: "/root:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", TERM: "dumb", SYSTEMD_PAGER: "cat" };
      const ended = await node.exec(typed, { stdin: "y\ny\n", env, timeoutMs: COMMAND_MS });
      console.log(`[${ended.code}] ${command}`);
      if (ended.code !== 0 && !(ended.code === 1 && ANSWERS.test(command)))
        failed.push(`${command} ended with ${ended.code}: ${ended.stdout.slice(-600)}`);
    }

    expect(failed).toEqual([]);
    expect(commands.length).toBeGreaterThan(10);
  },
  HANG_GUARD_MS,
);
