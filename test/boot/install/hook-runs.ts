import { type InstallOptions, runInstall } from "../../../src/cli/commands/install.ts";
import { runUninstall, type UninstallOptions } from "../../../src/cli/commands/uninstall.ts";
import type { ScratchHost } from "./scratch-host.ts";

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Commands of the service manager. */
  readonly commands: readonly string[];
}

interface World {
  readonly hostRoot: string;
  readonly terminal?: boolean;
  readonly answer?: "yes" | "no";
  readonly complaint?: string;
}

/** The program "unghost" in these tests; only its content matters. */
export const PROGRAM = "/opt/download/unghost";

export function install(host: ScratchHost, changes: Partial<InstallOptions> & Partial<World> = {}): Promise<Ran> {
  return ran(host, changes, (common, io) => {
    const options: InstallOptions = {
      ...common,
      execPath: `${host.root}${PROGRAM}`,
      binDir: "/usr/local/bin",
      distribution: undefined,
      deadlineSeconds: 60,
      bootArgs: [],
      version: "1.2.3",
      ...changes,
    };
    return runInstall(options, io);
  });
}

export function uninstall(host: ScratchHost, changes: Partial<UninstallOptions> & Partial<World> = {}): Promise<Ran> {
  return ran(host, changes, (common, io) => {
    return runUninstall({ ...common, purge: false, uid: process.getuid?.() ?? 0, ...changes }, io);
  });
}

async function ran(
  host: ScratchHost,
  { terminal = false, answer = "no", complaint }: Partial<World>,
  run: (common: Omit<UninstallOptions, "purge" | "uid">, io: Parameters<typeof runInstall>[1]) => Promise<number>,
): Promise<Ran> {
  const output = { stdout: "", stderr: "" };
  const commands: string[] = [];
  const code = await run(
    {
      hostRoot: host.root,
      stateDir: "/var/lib/unghost",
      force: false,
      dryRun: false,
      yes: false,
      confirm: () => Promise.resolve(answer),
      systemdRuns: false,
      runCommand: (command) => {
        commands.push(command.join(" "));
        return Promise.resolve(complaint);
      },
    },
    {
      stdout: (text) => void (output.stdout += text),
      stderr: (text) => void (output.stderr += text),
      stdinIsTerminal: terminal,
      stdoutIsTerminal: terminal,
    },
  );
  return { code, ...output, commands };
}
