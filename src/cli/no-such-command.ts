import { printable } from "../host/text.ts";
import { COMMAND_NAMES } from "./commands/index.ts";
import { didYouMean } from "./settings/suggest.ts";

/** A typo must never lead to a command that changes the node. */
const CHANGES_THE_NODE = ["heal", "boot", "agent", "undo", "quarantine", "install", "uninstall", "withdraw"];

export function noSuchCommand(name: string): string {
  const harmless = COMMAND_NAMES.filter((known) => !CHANGES_THE_NODE.includes(known));
  const suggestion = didYouMean(name, harmless) || ".";
  return `unghost: there is no command "${printable(name)}"${suggestion} unghost help lists the commands.`;
}
