import manifest from "../../package.json" with { type: "json" };

/** Set by the build; missing when the sources are run directly. */
declare const UNGHOST_COMMIT: string | undefined;

export const VERSION: string = manifest.version;
export const COMMIT: string = typeof UNGHOST_COMMIT === "string" ? UNGHOST_COMMIT : "unknown";
