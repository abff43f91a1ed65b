import manifest from "../../package.json" with { type: "json" };

/** Set by the build; missing when the sources are run directly. */
declare const UNGHOST_COMMIT: string | undefined;
declare const UNGHOST_IMAGE_NAME: string | undefined;

export const VERSION: string = manifest.version;
export const COMMIT: string = typeof UNGHOST_COMMIT === "string" ? UNGHOST_COMMIT : "unknown";
/** The container image of this release. Built without an address to publish at, it is the chart's placeholder. */
export const IMAGE: string = `${typeof UNGHOST_IMAGE_NAME === "string" ? UNGHOST_IMAGE_NAME : "registry.example/unghost"}:${VERSION}`;
