import {
  AliasNotFoundError,
  ArgumentParseError,
  FlagNotFoundError,
  UnexpectedFlagError,
  UnexpectedPositionalError,
  UnsatisfiedFlagError,
  UnsatisfiedPositionalError,
} from "@stricli/core";
import { nearestOf } from "./config/suggest.ts";
import { kebab } from "./settings.ts";

/**
 * What is wrong with a command line. stricli's own formatter finds its messages by the names of its classes, which the
 * built executable does not keep.
 */
export function argumentMistake(thrown: unknown, flags: readonly string[]): string {
  if (thrown instanceof FlagNotFoundError) {
    const nearest = nearestOf(kebab(thrown.input), flags.map(kebab));
    return `unknown flag --${thrown.input}${nearest === undefined ? "" : `, did you mean --${nearest}?`}`;
  }
  if (thrown instanceof AliasNotFoundError) return `unknown flag -${thrown.input}`;
  if (thrown instanceof UnsatisfiedFlagError) {
    return `--${kebab(thrown.externalFlagName)} has no value: give one, or leave the flag out`;
  }
  if (thrown instanceof UnexpectedFlagError) {
    return `--${kebab(thrown.externalFlagName)} is given twice (${thrown.previousInput} and ${thrown.input}): give it once`;
  }
  if (thrown instanceof UnexpectedPositionalError) return `unexpected argument "${thrown.input}"`;
  if (thrown instanceof UnsatisfiedPositionalError) return `${thrown.placeholder} is missing`;
  if (thrown instanceof ArgumentParseError) {
    const { externalFlagNameOrPlaceholder: name, exception } = thrown;
    const place = flags.some((flag) => kebab(flag) === kebab(name)) ? `--${kebab(name)}` : name;
    return `${place}: ${sentenceOf(exception, thrown.input)}`;
  }
  return sentenceOf(thrown, "");
}

function sentenceOf(thrown: unknown, input: string): string {
  // Of stricli's parser of booleans: the only parser that is not ours.
  if (thrown instanceof SyntaxError) return `expected true or false, got "${input}"`;
  return thrown instanceof Error ? thrown.message : String(thrown);
}
