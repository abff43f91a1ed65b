import type { Case } from "./corpus/case.ts";
import { creationBlocked } from "./corpus/creation-blocked.ts";
import { leaksAndRuntimes } from "./corpus/leaks-and-runtimes.ts";
import { networks } from "./corpus/networks.ts";
import { nodeLimits } from "./corpus/node-limits.ts";
import { ordinary } from "./corpus/ordinary.ts";
import { removalFails } from "./corpus/removal-fails.ts";
import { removalFailsMore } from "./corpus/removal-fails-more.ts";
import { volumes } from "./corpus/volumes.ts";

export const positives: readonly Case[] = [
  ...creationBlocked,
  ...removalFails,
  ...removalFailsMore,
  ...leaksAndRuntimes,
  ...volumes,
  ...nodeLimits,
  ...networks,
];

export const negatives: readonly Case[] = ordinary;

/** Synthetic lines in the formats of real errors. */
export const corpus: readonly Case[] = [...positives, ...negatives];
