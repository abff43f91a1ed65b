/** A runtime endpoint as crictl and kubelet write it: `unix:///run/x.sock`, or just the path. */
export type ParsedEndpoint =
  | { readonly ok: true; readonly path: string }
  | { readonly ok: false; readonly message: string };

export function parseEndpoint(text: string): ParsedEndpoint {
  const trimmed = text.trim();
  const path = trimmed.startsWith("unix:") ? trimmed.replace(/^unix:(\/\/)?/, "") : trimmed;
  if (path.startsWith("/")) return { ok: true, path };
  return {
    ok: false,
    message: `"${text}" is not a runtime endpoint that unghost can use: give a unix socket such as unix:///run/containerd/containerd.sock`,
  };
}
