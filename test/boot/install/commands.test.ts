import { describe, expect, test } from "vitest";
import { installCommands, runCommand } from "../../../src/boot/install/apply.ts";
import { type HookOptions, runCommands } from "../../../src/cli/commands/install.ts";

const COMMANDS = [
  ["systemctl", "daemon-reload"],
  ["systemctl", "restart", "unghost-agent.service"],
];

async function given(changes: Partial<HookOptions>, complaints: Readonly<Record<string, string>> = {}) {
  const output = { stdout: "", stderr: "" };
  const ran: string[] = [];
  const options: HookOptions = {
    hostRoot: "/",
    stateDir: "/var/lib/unghost",
    force: false,
    dryRun: false,
    yes: true,
    confirm: () => Promise.resolve("no"),
    systemdRuns: true,
    runCommand: (command) => {
      ran.push(command.join(" "));
      return Promise.resolve(complaints[command.join(" ")]);
    },
    ...changes,
  };
  const io = {
    stdout: (text: string) => void (output.stdout += text),
    stderr: (text: string) => void (output.stderr += text),
    stdinIsTerminal: false,
    stdoutIsTerminal: false,
  };
  return { failed: await runCommands(COMMANDS, options, io), ran, ...output };
}

test("starts the keeper at once when it is installed", () => {
  const { after } = installCommands(["/etc/systemd/system/unghost-keep.service"]);

  expect(after.map((command) => command.join(" "))).toEqual([
    "systemctl daemon-reload",
    "systemctl restart unghost-keep.service",
  ]);
});

describe("runCommands", () => {
  test("runs the commands when systemd manages this host", async () => {
    const words = COMMANDS.map((command) => command.join(" "));
    expect(await given({})).toEqual({ failed: false, ran: words, stdout: "", stderr: "" });
  });

  test.each([{ hostRoot: "/host" }, { systemdRuns: false }])("only prints them with %j", async (changes) => {
    const { failed, ran, stdout } = await given(changes);

    expect({ failed, ran }).toEqual({ failed: false, ran: [] });
    expect(stdout).toContain("systemctl daemon-reload && systemctl restart unghost-agent.service");
  });

  test("continues after a failed command, and reports its output", async () => {
    const { failed, ran, stderr } = await given({}, { "systemctl daemon-reload": "no bus" });

    expect(failed).toBe(true);
    expect(ran).toHaveLength(2);
    expect(stderr).toContain("systemctl daemon-reload failed: no bus.");
  });
});

describe("runCommand", () => {
  test("returns nothing on success, and the error output on failure", async () => {
    expect(await runCommand(["true"])).toBeUndefined();
    expect(await runCommand(["sh", "-c", "echo no bus >&2; exit 1"])).toBe("no bus");
    expect(await runCommand(["no-such-program-anywhere"])).toContain("ENOENT");
  });
});
