import { COMMAND_NAMES } from "./commands/index.ts";

/** Commands that need no node. */
const ANYWHERE = ["fleet", "explain", "completion", "version", "help"];

/** What asks the cluster for the same thing. */
const FROM_A_LAPTOP: ReadonlyMap<string, string> = new Map([
  ["scan", "scan"],
  ["heal", "heal NODE"],
  ["history", "history NODE"],
]);

const SYSTEMS: Partial<Record<NodeJS.Platform, string>> = { darwin: "macOS", win32: "Windows" };

/** Why a command cannot run on this machine, and what to run instead: nodes run Linux. Undefined where it can. */
export function whyNotHere(
  [command = "help", ...rest]: readonly string[],
  platform: NodeJS.Platform,
): string | undefined {
  if (platform === "linux" || ANYWHERE.includes(command) || !COMMAND_NAMES.includes(command)) return undefined;
  const isSaved = rest.some((word) => word === "--from" || word.startsWith("--from="));
  if (command === "scan" && isSaved) return undefined;
  const here = `unghost ${command} runs on a Linux node, and this machine runs ${SYSTEMS[platform] ?? platform}`;
  const onNode = `on the node: sudo unghost ${command}`;
  const twin = FROM_A_LAPTOP.get(command);
  const instead = twin === undefined ? [onNode] : [`from here: kubectl unghost ${twin}`, onNode];
  const saved = command === "scan" ? ["with a bundle of a node: unghost scan --from FILE"] : [];
  return `${here}. Run it ${[...instead, ...saved].join("; ")}`;
}
