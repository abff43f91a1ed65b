/** The built status page. */
export interface StatusPage {
  readonly html: string;
  /** The same, compressed, in base64. */
  readonly gzip: string;
  /** Of its inline scripts and styles, for the content security policy: `sha256-…`, without quotes. */
  readonly scriptHashes: readonly string[];
  readonly styleHashes: readonly string[];
}

/** Loaded with the first request, because most agents never get one. */
export async function builtPage(): Promise<StatusPage> {
  const { PAGE } = await import("../page/gen/page.ts");
  return PAGE;
}
