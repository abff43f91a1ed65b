/** One log line and its expected class; null for errors of other causes. */
export interface Case {
  readonly line: string;
  readonly expect: string | null;
  /** Classes that the same line must also offer, because it alone cannot separate them. */
  readonly also?: readonly string[];
}

export function lines(expect: string | null, all: readonly string[], also?: readonly string[]): readonly Case[] {
  return all.map((line) => ({ line, expect, ...(also === undefined ? {} : { also }) }));
}

export const ID = "7c1f0e5ab2d94836f1a0c7be52d86e4913fa07cd2b6e8150947bd3f6ac8e210d";
export const ID2 = "0b9d44c1e7f2a6835d10be77c3f8a92164e05bd7f3c2198a6e4d70b5f1c83e92";
export const UID = "3f8e6c1a-0b7d-4e52-9c3f-71d2a8b4e605";
