import { sourcesOf } from "./sources.ts";
import type { WireState } from "./wire.ts";

export function Sources({ agent }: { readonly agent: WireState }) {
  if (agent.scan === undefined) return undefined;
  return (
    <section aria-labelledby="sources">
      <h2 id="sources">Sources</h2>
      <table class="card">
        <thead class="hidden">
          <tr>
            <th scope="col">Source</th>
            <th scope="col">What was read</th>
          </tr>
        </thead>
        <tbody>
          {sourcesOf(agent.scan.report).map(({ name, health, detail, next }) => (
            <tr key={`${name} ${detail}`}>
              <th scope="row">
                {name}
                <span class={`badge ${health}`}>{health}</span>
              </th>
              <td>
                {detail}
                {next === undefined ? undefined : <p class="quiet">{next}</p>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
