import { useState } from "preact/hooks";

/** A command to be copied as it is: by its button, or by one click into it. */
export function Command({ line }: { readonly line: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = (): void => {
    copyText(line).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <span class="command">
      <code>{line}</code>
      <button type="button" class="copy" aria-label={`Copy ${line}`} onClick={copy}>
        {isCopied ? "copied" : "copy"}
      </button>
    </span>
  );
}

/** Without TLS browsers have no clipboard interface; the old way works there. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return await navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  if (!isDone) throw new Error("not copied");
}
