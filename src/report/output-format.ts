export type OutputFormat = "table" | "json" | "yaml";
export const OUTPUT_FORMATS: readonly OutputFormat[] = ["table", "json", "yaml"];
