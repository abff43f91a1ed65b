import { globSync, readFileSync } from "node:fs";

/** Where a command is typed: at the cluster by its administrator, in a shell on a node, on a node with systemd. */
export type Place = "cluster" | "node" | "systemd";

export interface DocumentedCommand {
  readonly page: string;
  /** As printed. */
  readonly command: string;
  /** The page says why no test runs it. */
  readonly notRun?: string;
}

/** Printed by `helm install`: the same commands, as a template. */
export const NOTES = "deploy/helm/unghost/templates/NOTES.txt";

/** Reference, not steps to follow: decisions, generated tables, and what operators do by hand about one class each. */
const REFERENCE = /^docs\/(?:adr\/|classes\.md|reason-codes\.md|mutation\.md)/;
const PAGES = ["README.md", "SECURITY.md", ...globSync("docs/**/*.md"), NOTES].filter((page) => !REFERENCE.test(page));

const PROGRAMS =
  "unghost|kubectl|helm|crictl|systemctl|journalctl|curl|ctr|k3s|talosctl|skopeo|crane|cosign|dpkg|rpm|apt|apt-get|yum|dnf|amtool|sh|install|less|make|docker|brew|nix|wget|sha256sum|node-problem-detector";
const COMMAND = new RegExp(`^(?:sudo |[A-Z_]+=\\S+ )*(?:${PROGRAMS}) \\S`);
/** The name of a command in a sentence, and nothing that anybody would type like this. */
const NAME = new RegExp(
  `^(?:kubectl (?:debug|debug node|describe pod|drain|krew install|logs|port-forward|unghost)|helm (?:test|uninstall)|cosign sign|crictl \\S+|dpkg -i|rpm -U|crictl rmp --force|unghost (?:explain|fleet|fleet heal|undo)|make \\S+)$`,
);

export function documentedCommands(): readonly DocumentedCommand[] {
  const commands = PAGES.flatMap(commandsIn);
  return commands.filter(({ command }, index) => commands.findIndex((one) => one.command === command) === index);
}

/** Undefined for a program that tests have nowhere to run. */
export function placeOf({ command }: DocumentedCommand): Place | undefined {
  if (/^(?:sudo )?(?:systemctl|unghost (?:install|uninstall|cni|boot))\b/.test(command)) return "systemd";
  if (/^(?:kubectl|helm|unghost (?:fleet|withdraw))\b/.test(command)) return "cluster";
  return /^(?:unghost|crictl|curl|ctr)\b/.test(command) ? "node" : undefined;
}

function commandsIn(page: string): readonly DocumentedCommand[] {
  const text = readFileSync(page, "utf8").replaceAll(/\\\n\s*/g, "");
  const blocks = [...text.matchAll(/```[a-z]*\n(.*?)```/gs)].map(([, block = ""]) => block);
  const spans = [...text.replaceAll(/```.*?```/gs, "").matchAll(/`([^`\n]+)`/g)].map(([, span = ""]) => span);
  const typed = page === NOTES ? typedInNotes(text) : blocks.flatMap(typedIn);
  const marks = [...text.matchAll(/not run by tests: (\S.*?): (.*?) (?:-->|\*\/)/g)].map(
    ([, prefix = "", reason = ""]) => ({ prefix, reason }),
  );
  return [...typed, ...spans]
    .filter((command) => COMMAND.test(command) && !NAME.test(command))
    .map((command) => {
      const notRun = marks.find(({ prefix }) => command.startsWith(prefix))?.reason;
      return notRun === undefined ? { page, command } : { page, command, notRun };
    });
}

/** After a prompt if the block has prompts, because output follows there. */
export function typedIn(block: string): readonly string[] {
  const lines = block.split("\n").map((line) => line.trim().replace(/\s{2,}#.*$/, ""));
  const prompted = lines.filter((line) => /^[$#] (?!.*…$)/.test(line)).map((line) => line.slice(2));
  return lines.some((line) => line.startsWith("$ ")) ? prompted : [...lines, ...prompted];
}

export function typedInNotes(text: string): readonly string[] {
  return [...text.matchAll(/^ {5}(\S.*)$/gm)].map(([, command = ""]) => command);
}
