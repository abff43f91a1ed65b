import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cached } from "./cache.ts";
import { run, runOrThrow } from "./command.ts";
import { unpackDebianPackages } from "./debian-packages.ts";
import type { LabNode } from "./node.ts";
import { until } from "./poll.ts";

/** A terminal of a given width: tmux, with its own server. */
export interface Terminal {
  /**
   * The screen after the command has ended, with its exit code as the last line. `answers` are typed after their
   * question.
   */
  show(
    command: readonly string[],
    columns: number,
    options?: {
      readonly env?: Readonly<Record<string, string>>;
      readonly answers?: Readonly<Record<string, string>>;
      readonly colours?: boolean;
    },
  ): Promise<string>;
  close(): Promise<void>;
}

/** More than any recorded output, so that nothing scrolls away. */
const ROWS = 400;
const GUARD_MS = 180_000;

export async function openTerminal(): Promise<Terminal> {
  const { program, env } = await ensureTmux();
  const dir = mkdtempSync(join(tmpdir(), "unghost-terminal-"));
  const tmux = async (...args: readonly string[]): Promise<string> => {
    const command = [program, "-S", join(dir, "socket"), "-f", "/dev/null", ...args];
    return (await runOrThrow(command, { env, timeoutMs: GUARD_MS })).stdout;
  };
  // A window that never ends keeps the server alive between two commands.
  await tmux("new-session", "-d", "-s", "base", "sleep infinity");
  await tmux("set-option", "-g", "remain-on-exit", "on");
  await tmux("set-option", "-g", "remain-on-exit-format", "");
  let sessions = 0;
  return {
    show: async (command, columns, options = {}) => {
      const name = `s${sessions++}`;
      const settings = Object.entries({ TERM: "tmux-256color", LANG: "C.UTF-8", ...options.env });
      const line = ["env", "-i", ...settings.map(([key, value]) => `${key}=${value}`), ...command]
        .map(quoted)
        .join(" ");
      await tmux(
        "new-session",
        "-d",
        "-s",
        name,
        "-x",
        String(columns),
        "-y",
        String(ROWS),
        // The pane stays: with its end tmux may drop output that it has not read yet.
        `${line}; printf '[exit %s]' $?; exec sleep infinity`,
      );
      const screen = (): Promise<string> => tmux("capture-pane", "-p", "-t", name);
      const open = new Map(Object.entries(options.answers ?? {}));
      await until(`${command.join(" ")} ends`, GUARD_MS, async () => {
        const shown = await screen();
        for (const [question, answer] of open) {
          if (!shown.includes(question)) continue;
          open.delete(question);
          await tmux("send-keys", "-t", name, answer, "Enter");
        }
        // The pane ends before its last output is drawn.
        return /\[exit \d+\]\s*$/.test(shown) || undefined;
      });
      const shown = options.colours === true ? await tmux("capture-pane", "-p", "-e", "-t", name) : await screen();
      await tmux("kill-session", "-t", name);
      return `${shown.trimEnd()}\n`;
    },
    close: async () => {
      await tmux("kill-server");
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** The command as typed by an operator on the node. */
export function onNode(node: Pick<LabNode, "initPid">, command: readonly string[]): readonly string[] {
  return ["nsenter", "-t", String(node.initPid), "-a", "--", ...command];
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

interface Tmux {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
}

/** This machine's tmux, or Debian's in the lab's cache. */
async function ensureTmux(): Promise<Tmux> {
  const env = { PATH: process.env["PATH"] ?? "", LANG: "C.UTF-8", TERM: "xterm-256color" };
  const installed = await run(["tmux", "-V"], { env }).catch(() => undefined);
  if (installed?.code === 0) return { program: "tmux", env };
  const root = await cached("tmux", (dir) =>
    unpackDebianPackages(["tmux", "libevent-core-2.1-7", "libutempter0", "libtinfo6", "ncurses-base"], dir),
  );
  const machine = `${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu`;
  const libraries = [`${root}/usr/lib/${machine}`, `${root}/lib/${machine}`].join(":");
  const terminfo = `${root}/lib/terminfo`;
  return { program: join(root, "usr/bin/tmux"), env: { ...env, LD_LIBRARY_PATH: libraries, TERMINFO: terminfo } };
}
