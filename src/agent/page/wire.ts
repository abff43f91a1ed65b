import type { AgentState } from "../state/state.ts";
import type { ClassWords, TimelineRun } from "../state/state-json.ts";

/** What is left of a value in JSON as the agent writes it: dates as ISO strings, maps as plain objects. */
type Wire<T> = T extends Date
  ? string
  : T extends ReadonlyMap<infer Key extends string, infer Value>
    ? Readonly<Partial<Record<Key, Wire<Value>>>>
    : T extends readonly (infer Item)[]
      ? readonly Wire<Item>[]
      : T extends object
        ? { readonly [Key in keyof T]: Wire<T[Key]> }
        : T;

export type WireState = Omit<Wire<AgentState>, "timeline"> & {
  readonly timeline: readonly TimelineRun[];
  readonly classWords: Readonly<Record<string, ClassWords>>;
};
export type WireSighting = WireState["sightings"][number];
export type WireRun = NonNullable<WireState["runs"]>[number];
export type WireReport = NonNullable<WireState["scan"]>["report"];
export type WireCounts = NonNullable<WireState["scan"]>["counts"];

/** Names and messages are other people's: what could hide in them or turn the line around is shown as a replacement. */
export function readState<State = WireState>(json: string): State {
  return JSON.parse(json, (_key, value: unknown) =>
    typeof value === "string" ? value.replace(/[\p{Cc}\p{Cf}]/gu, "\uFFFD") : value,
  ) as State;
}
