/**
 * What ends a piece of work: the caller's signal, a time limit, or whoever works. It holds its listeners itself.
 * AbortSignal.any and Requests hold theirs weakly: Node's garbage collector can take a chain of them apart while an answer
 * is waited for, and nothing ends the wait then.
 */
export class Stop {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | null | undefined;
  readonly #forward = (): void => this.now(this.#caller?.reason);
  readonly #stopped: Promise<never>;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(caller?: AbortSignal | null) {
    this.#caller = caller;
    this.#stopped = new Promise((_, reject) => {
      this.#controller.signal.addEventListener("abort", () => reject(this.#controller.signal.reason), { once: true });
    });
    this.#stopped.catch(() => undefined); // who waits hears of it
    if (caller?.aborted) {
      this.#forward();
    }
    caller?.addEventListener("abort", this.#forward, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Stops, unless it is called again or ended within the time. */
  after(ms: number, reason: Error): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.now(reason), ms);
  }

  now(reason?: unknown): void {
    this.#controller.abort(reason);
  }

  /** The work is done, or given up: what is left of it stops, and nothing is listened to any more. */
  end(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener("abort", this.#forward);
    this.now();
  }

  /** Waits for the promise, or throws why it stopped. For a few promises: each is kept until the end. */
  wait<T>(promise: Promise<T>): Promise<T> {
    return Promise.race([promise, this.#stopped]);
  }

  /** Reads a body as it comes. It ends where the body does, or with the stop. */
  async *chunks(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
    const reader = body?.getReader();
    const cancel = (): void => void reader?.cancel(this.signal.reason).catch(() => undefined);
    this.signal.addEventListener("abort", cancel);
    try {
      while (reader && !this.signal.aborted) {
        const next = await reader.read();
        if (next.done) {
          return;
        }
        yield next.value;
      }
    } finally {
      this.signal.removeEventListener("abort", cancel);
    }
  }
}
