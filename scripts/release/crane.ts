/** Pushes image layouts, and serves a registry for tests. */
export const CRANE = { module: "github.com/google/go-containerregistry", version: "v0.20.8" } as const;
