import { dirname, resolve } from "node:path";
import { stringify } from "smol-toml";
import { parseToml, stringsIn } from "../host/toml.ts";

/** Tables that make containerd listen somewhere; a borrowed one listens on its private socket alone. */
const LISTENING_TABLES = ["grpc", "ttrpc", "debug", "metrics"];

/** Given on the command line, where they win over the file. */
const ON_COMMAND_LINE = ["root", "state"];

/** The CRI plugin under its names in 1.x and 2.x. */
const CRI_PLUGINS = [
  "io.containerd.grpc.v1.cri",
  "io.containerd.cri.v1.runtime",
  "io.containerd.cri.v1.images",
  "io.containerd.podsandbox.controller.v1.podsandbox",
];

export type BorrowedConfig = { readonly text: string } | { readonly problem: string };

/**
 * The distribution's own configuration without what would make it listen where the real one does. Without CRI,
 * containerd starts whatever its records contain.
 */
export function borrowedConfig(config: string, path: string, cri: "with-cri" | "without-cri"): BorrowedConfig {
  const parsed = parseToml(config);
  if ("problem" in parsed) return { problem: `${path} is not valid TOML: ${parsed.problem}` };
  const dropped = new Set([...LISTENING_TABLES, ...ON_COMMAND_LINE]);
  const kept = Object.entries(parsed.table).filter(([key]) => !dropped.has(key));
  const table = Object.fromEntries(kept);
  if ("imports" in table) {
    // containerd reads relative imports from beside the configuration, and ours lies elsewhere.
    table["imports"] = stringsIn(table["imports"]).map((one) => resolve(dirname(path), one));
  }
  if (cri === "without-cri") table["disabled_plugins"] = [...CRI_PLUGINS, ...stringsIn(table["disabled_plugins"])];
  return { text: stringify(table, { numbersAsFloat: true }) };
}
