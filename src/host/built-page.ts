/** One document with inline script and style, as scripts/build-page.ts makes it. */
export interface BuiltPage {
  readonly html: string;
  /** The same, compressed, in base64. */
  readonly gzip: string;
  /** `sha256-…`, without quotes. */
  readonly scriptHashes: readonly string[];
  readonly styleHashes: readonly string[];
}
