/** The three kinds of flag there are; everything is optional, because environment and file may say it, too. */

export function onOff(brief: string) {
  return { kind: "boolean", optional: true, withNegated: false, brief } as const;
}

export function text(brief: string, placeholder: string) {
  return { kind: "parsed", parse: String, optional: true, brief, placeholder } as const;
}

export function list(brief: string, placeholder: string) {
  return { kind: "parsed", parse: String, optional: true, variadic: ",", brief, placeholder } as const;
}

export function positive(brief: string, placeholder: string) {
  return { kind: "parsed", parse: positiveNumber, optional: true, brief, placeholder } as const;
}

function positiveNumber(input: string): number {
  const number = Number(input);
  if (!Number.isInteger(number) || number < 1) throw new Error(`"${input}" is not a whole number from 1 on`);
  return number;
}

/** What scan and heal can be narrowed to. */
export const targetsParameter = {
  kind: "array",
  parameter: { parse: String, brief: "NAMESPACE/POD, sandbox id or finding id (default: all)", placeholder: "TARGET" },
} as const;

type FlagTable = Readonly<Record<string, { readonly flag: object }>>;

/** The flags of a table of settings, under the same names. */
export function flagsOf<Table extends FlagTable>(table: Table) {
  const flags = Object.fromEntries(Object.entries(table).map(([key, { flag }]) => [key, flag]));
  return flags as { readonly [Key in keyof Table]: Table[Key]["flag"] };
}

/** What a command gets for such flags. */
export type FlagValues<Flags> = {
  readonly [Key in keyof Flags]?: Flags[Key] extends { readonly kind: "boolean" }
    ? boolean
    : Flags[Key] extends { readonly variadic: string }
      ? readonly string[]
      : string;
};
