import { parse, type TomlTable } from "smol-toml";

export type ParsedToml = { readonly table: TomlTable } | { readonly problem: string };

/** Integers are parsed as BigInt, so that they can be distinguished from floats when the table is written again. */
export function parseToml(text: string): ParsedToml {
  try {
    return { table: parse(text, { integersAsBigInt: true }) };
  } catch (error) {
    const [problem = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
    return { problem };
  }
}

export function stringsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}
