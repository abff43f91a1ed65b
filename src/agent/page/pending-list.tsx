import { pendingKey, pendingLine } from "../../report/pending.ts";
import { More } from "./more.tsx";
import type { WireReport } from "./wire.ts";

const AT_ONCE = 6;

export function PendingList({ report }: { readonly report: WireReport | undefined }) {
  const pending = report?.pending ?? [];
  if (report === undefined || pending.length === 0) return undefined;
  return (
    <section aria-labelledby="pending">
      <h2 id="pending">Pending ({pending.length})</h2>
      <More items={pending} step={AT_ONCE} name="pending entries">
        {(shown) => (
          <ul class="blocked">
            {shown.map((one) => (
              <li key={pendingKey(one)}>{pendingLine(one, report.observedAt)}</li>
            ))}
          </ul>
        )}
      </More>
    </section>
  );
}
