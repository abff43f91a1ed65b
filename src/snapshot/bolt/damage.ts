/** One place where the file is not what bbolt writes. */
export interface Damage {
  readonly page: number;
  readonly reason: string;
}

export function damageInWords({ page, reason }: Damage): string {
  return `page ${page} ${reason}`;
}
