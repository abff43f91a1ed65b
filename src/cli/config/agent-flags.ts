import type { TypedFlagParameter } from "@stricli/core";
import { onOff, text } from "../flag-kinds.ts";

/** Keys of the agent's part that have a flag and an environment twin; the others take more than one word. */
export interface AgentFlags {
  readonly scanEvery?: string;
  readonly observeOnly?: boolean;
  readonly listen?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tokenFile?: string;
  readonly textfile?: string;
  readonly logLevel?: string;
}

export const agentFlags = {
  scanEvery: text("The slow full look under the events (default 60s)", "DURATION"),
  observeOnly: onOff("Show everything, touch nothing"),
  listen: text("Where metrics and the status page are served (default 127.0.0.1:20258; empty: nowhere)", "HOST:PORT"),
  tlsCert: text("Serve over TLS, with this certificate", "FILE"),
  tlsKey: text("The certificate's key", "FILE"),
  tokenFile: text("Answer only to the bearer token in this file", "FILE"),
  textfile: text("Write the metrics to this file, too, for node_exporter's textfile collector", "FILE"),
  logLevel: text("debug, info, warn or error (default info)", "LEVEL"),
} as const satisfies { readonly [Key in keyof Required<AgentFlags>]: TypedFlagParameter<never> | object };

export const AGENT_FLAG_KEYS: readonly (keyof AgentFlags)[] = [
  "scanEvery",
  "observeOnly",
  "listen",
  "tlsCert",
  "tlsKey",
  "tokenFile",
  "textfile",
  "logLevel",
];
