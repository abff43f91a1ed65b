import type { AgentEvent, AgentState } from "./state.ts";

/** The agent's state. Exporters subscribe to it; only the loop changes it. */
export interface Store {
  state(): AgentState;
  update(change: (state: AgentState) => AgentState): void;
  publish(event: AgentEvent): void;
  /** Called after each change, and with each event. Returns a function to unsubscribe. */
  onChange(listener: (state: AgentState) => void): () => void;
  onEvent(listener: (event: AgentEvent) => void): () => void;
}

/** The part of the store that exporters use. */
export type Watched = Pick<Store, "state" | "onChange" | "onEvent">;

export function openStore(initial: AgentState): Store {
  let current = initial;
  const changeListeners = new Set<(state: AgentState) => void>();
  const eventListeners = new Set<(event: AgentEvent) => void>();
  return {
    state: () => current,
    update: (change) => {
      current = change(current);
      for (const listener of changeListeners) listener(current);
    },
    publish: (event) => {
      for (const listener of eventListeners) listener(event);
    },
    onChange: (listener) => subscribe(changeListeners, listener),
    onEvent: (listener) => subscribe(eventListeners, listener),
  };
}

function subscribe<Listener>(listeners: Set<Listener>, listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
