/** The status page in one piece, as the build makes it. */
export interface StatusPage {
  readonly html: string;
  /** The same, compressed, in base64. */
  readonly gzip: string;
  /** Of its inline scripts and styles, as a content security policy names them: `sha256-…`, without quotes. */
  readonly scriptHashes: readonly string[];
  readonly styleHashes: readonly string[];
}

/** Loaded with the first visit: most agents never have one. */
export async function builtPage(): Promise<StatusPage> {
  const { PAGE } = await import("../page/gen/page.ts");
  return PAGE;
}
