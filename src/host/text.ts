import { type JsonLimits, jsonMeter } from "./json-meter.ts";

/** Shorter texts cannot hold much. */
const METERED_LENGTH = 64 * 1024;

/** Parsed JSON, or undefined if the text is invalid or holds too much: for texts of other programs. */
export function parseJson(text: string, limits?: JsonLimits): unknown {
  if (text.length > METERED_LENGTH && jsonMeter(limits).add(new TextEncoder().encode(text)) !== undefined)
    return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A property of a value that may not be an object. */
export function property(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
}

/** The same, if it is a string. */
export function stringIn(value: unknown, key: string): string | undefined {
  const text = property(value, key);
  return typeof text === "string" ? text : undefined;
}

/** Escapes control and invisible characters in a name or message of another program. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\uFFFD]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
  });
}

/** At most `longest` characters: the last one of a text that is longer is an ellipsis. */
export function truncate(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, longest - 1)}…`;
}

/** 42 -> "42s", 200 -> "3m20s", 7300 -> "2h1m": short enough for a table cell. */
export function durationInWords(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole}s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return whole % 60 === 0 ? `${minutes}m` : `${minutes}m${whole % 60}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours}h` : `${hours}h${minutes % 60}m`;
  return `${Math.floor(hours / 24)}d`;
}

/** Quoted, if a shell would read it as something else. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
