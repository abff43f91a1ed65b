import { dirname, isAbsolute, join } from "node:path";

/** Tables that make containerd listen somewhere; a borrowed one listens on its private socket alone. */
const LISTENING_TABLES = new Set(["grpc", "ttrpc", "debug", "metrics"]);

const TABLE = /^\s*\[\[?\s*([A-Za-z0-9_-]+|"[^"]*"|'[^']*')/;

/**
 * The distribution's own configuration without what would make it listen where the real one does. Root and state are
 * given on the command line, where they win over the file.
 */
export function borrowedConfig(config: string, path: string): string {
  const kept: string[] = [];
  let dropping = false;
  let inTable = false;
  for (const line of config.split("\n")) {
    const [, table] = TABLE.exec(line) ?? [];
    if (table !== undefined && line.includes("]")) {
      inTable = true;
      dropping = LISTENING_TABLES.has(table);
    }
    if (dropping) continue;
    if (!inTable && /^\s*(?:root|state)\s*=/.test(line)) continue;
    kept.push(!inTable && /^\s*imports\s*=/.test(line) ? absoluteImports(line, dirname(path)) : line);
  }
  return kept.join("\n");
}

/** containerd reads relative imports from beside the configuration, and ours lies elsewhere. */
function absoluteImports(line: string, dir: string): string {
  return line.replace(/(["'])([^"']+)\1/g, (_, quote: string, path: string) =>
    isAbsolute(path) ? quote + path + quote : quote + join(dir, path) + quote,
  );
}

/** The CRI plugin under its names in 1.x and 2.x. */
const CRI_PLUGINS = [
  "io.containerd.grpc.v1.cri",
  "io.containerd.cri.v1.runtime",
  "io.containerd.cri.v1.images",
  "io.containerd.podsandbox.controller.v1.podsandbox",
];

/** The same with CRI switched off: containerd then starts whatever its records say. */
export function withoutCri(config: string): string {
  const off = CRI_PLUGINS.map((plugin) => `"${plugin}"`).join(", ");
  const listed = /^\s*disabled_plugins\s*=\s*\[/m;
  const [top = ""] = config.split(/^\s*\[/m);
  if (listed.test(top)) return config.replace(listed, `disabled_plugins = [${off}, `);
  return `disabled_plugins = [${off}]\n${config}`;
}
