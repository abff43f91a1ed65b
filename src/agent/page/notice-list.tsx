import { PAGE_VERSION } from "./built-in.ts";
import { noticesOf } from "./notices.ts";
import { Ago } from "./time.tsx";
import type { WireState } from "./wire.ts";

export function Notices({ agent }: { readonly agent: WireState }) {
  const notices = noticesOf(agent, PAGE_VERSION);
  if (notices.length === 0) return undefined;
  return (
    <section aria-label="Notices" class="notices">
      {notices.map(({ title, text, since }) => (
        <div class="notice" key={title}>
          <h2>{title}</h2>
          <p>
            {text}
            {since === undefined ? undefined : (
              <>
                {" "}
                Opened <Ago at={since} />.
              </>
            )}
          </p>
        </div>
      ))}
    </section>
  );
}
