/** Bytes that wait for their reader. */
export class Arrivals {
  #chunks: Uint8Array[] = [];
  #over = false;
  #wake: () => void = () => undefined;

  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#wake();
  }

  end(): void {
    this.#over = true;
    this.#wake();
  }

  /** All that is there, as soon as there is something; nothing at all when nothing more will come. */
  async take(): Promise<readonly Uint8Array[]> {
    if (this.#chunks.length === 0 && !this.#over) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }
}
