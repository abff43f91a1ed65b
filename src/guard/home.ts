import { CNI_GUARD_BIN_DIR, CNI_GUARD_PLUGIN_DIRS, CNI_GUARD_STATE_DIR } from "../host/distributions.ts";

/** All of the guard on a node but its state. The launcher finds its companions beside itself. */
export const GUARD_HOME = "/opt/unghost/cni";
export const GUARD_BIN_DIR = CNI_GUARD_BIN_DIR;
export const GUARD_LAUNCHER = `${GUARD_HOME}/launcher`;
export const GUARD_PROGRAM = `${GUARD_HOME}/unghost`;
/** The directories of the real plugins, one a line: the launcher reads it where the runtime names ours alone. */
export const PLUGIN_DIRS_FILE = CNI_GUARD_PLUGIN_DIRS;
export const RECEIPT_FILE = `${GUARD_HOME}/receipt.json`;

/** The launcher has the same path. It does nothing but run the plugin while this directory does not exist. */
export const GUARD_STATE_DIR = CNI_GUARD_STATE_DIR;
export const GUARD_STATE_DIRECTORIES = ["attachments", "released", "failures", "queue", "brake", "adds"] as const;
