import { openApi } from "../../kube/api.ts";
import { listTable } from "../../kube/table.ts";
import type { Io } from "../io.ts";
import { kebab } from "../settings/table.ts";
import { FLEET_ACTIONS, fleetCommand } from "./fleet.ts";

/** A shell waits for it at each press of the tab key. */
const ANSWER_MS = 2000;

const FORMATS = ["wide", "name", "json", "yaml", "custom-columns=", "jsonpath=", "jsonpath-as-json="];
/** With the names of nodes. */
const OF_NODES = ["scan", "heal", "history", "watch", "doctor"];

/** The candidates behind `unghost fleet`, as kubectl has them: actions, formats, contexts, nodes and pods. */
export async function fleetWords(
  before: readonly string[],
  current: string,
  env: Io["env"],
): Promise<readonly string[]> {
  const { last, values, words } = readWords(before);
  switch (last) {
    case "output":
      return FORMATS;
    case "context":
      return await (await import("../../fleet/cluster-access.ts")).contextNames(values.get("kubeconfig"), env);
    case undefined:
      break;
    default:
      return [];
  }
  const [action, ...names] = words;
  if (action === undefined) return FLEET_ACTIONS;
  const { chooseCluster } = await import("../../fleet/cluster-access.ts");
  const { access, namespace } = await chooseCluster(
    { kubeconfig: values.get("kubeconfig"), context: values.get("context"), as: values.get("as") },
    env,
  );
  const api = openApi(access, { timeoutMs: ANSWER_MS });
  const named = async (path: string): Promise<readonly string[]> =>
    (await listTable(api, { path, columns: ["Name"] })).map(({ Name }) => Name).filter(isPlain);
  try {
    if (OF_NODES.includes(action)) return (await named("/api/v1/nodes")).filter((name) => !names.includes(name));
    if (action !== "why" || names.length > 0) return [];
    const [, given] = /^([^/]*)\//.exec(current) ?? [];
    const pods = await named(
      `/api/v1/namespaces/${encodeURIComponent(given ?? values.get("namespace") ?? namespace)}/pods`,
    );
    return given === undefined ? pods : pods.map((pod) => `${given}/${pod}`);
  } finally {
    api.close();
  }
}

/** Names that Kubernetes allows, so that a shell gets nothing but plain words. */
function isPlain(name: string): boolean {
  return /^[a-z0-9][a-z0-9.-]*$/.test(name);
}

interface TypedWords {
  /** The flag whose value is next. */
  readonly last?: string;
  readonly values: ReadonlyMap<string, string>;
  readonly words: readonly string[];
}

function readWords(before: readonly string[]): TypedWords {
  const { flags = {}, aliases = {} } = fleetCommand.parameters;
  const withValue = new Set(Object.entries(flags).flatMap(([name, { kind }]) => (kind === "boolean" ? [] : [name])));
  const nameOf = (word: string): string | undefined => {
    const [, long, short] = /^(?:--([a-z-]+)|-([A-Za-z]))$/.exec(word) ?? [];
    const name = short === undefined ? [...withValue].find((one) => kebab(one) === long) : Reflect.get(aliases, short);
    return typeof name === "string" && withValue.has(name) ? name : undefined;
  };
  const values = new Map<string, string>();
  const words: string[] = [];
  let last: string | undefined;
  for (const word of before) {
    const [, long = "", value] = /^--([a-z-]+)=(.*)$/s.exec(word) ?? [];
    if (last !== undefined) {
      values.set(last, word);
      last = undefined;
    } else if (value !== undefined) values.set([...withValue].find((one) => kebab(one) === long) ?? long, value);
    else if (word.startsWith("-")) last = nameOf(word);
    else words.push(word);
  }
  return { last, values, words };
}
