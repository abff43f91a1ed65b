/** Values, and nesting. */
export interface JsonLimits {
  readonly values: number;
  readonly depth: number;
}

/**
 * What JSON becomes is not bounded by its bytes: `{},` are three and take a hundred. A cluster answers a node of 500 pods with some
 * 300,000 values.
 */
export const JSON_LIMITS: JsonLimits = { values: 500_000, depth: 200 };

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPENING_BRACKET, CLOSING_BRACKET] = [0x5b, 0x5d];
/** `{` and `}` differ from the brackets by this bit. */
const BRACE_BIT = 0x20;

/** Counts values before they are parsed. Returns what is exceeded; text that is no JSON may pass. */
export function jsonMeter({ values, depth }: JsonLimits = JSON_LIMITS) {
  let isInString = false;
  let isEscaped = false;
  let count = 0;
  let open = 0;
  return {
    count: (): number => count,
    add: (bytes: Uint8Array): string | undefined => {
      for (let at = 0; at < bytes.length; at += 1) {
        const byte = bytes[at] ?? 0;
        if (isEscaped) isEscaped = false;
        else if (isInString) {
          if (byte === QUOTE) isInString = false;
          else if (byte === BACKSLASH) isEscaped = true;
        } else if (byte === QUOTE) isInString = true;
        else if (byte === COMMA) count += 1;
        else if ((byte | BRACE_BIT) === (OPENING_BRACKET | BRACE_BIT)) {
          count += 1;
          open += 1;
          if (open > depth) return `is nested more than ${depth} deep`;
        } else if ((byte | BRACE_BIT) === (CLOSING_BRACKET | BRACE_BIT)) open -= 1;
      }
      return count > values ? `has more than ${values} values` : undefined;
    },
  };
}
