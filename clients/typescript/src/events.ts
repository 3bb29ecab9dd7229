import { ProblemError, TokenError, problemOf } from "./problem.js";
import { backoff, retryAfter, sleep } from "./retry.js";
import type { Fetch } from "./retry.js";
import type { components, operations } from "./schema.js";
import { messages } from "./sse.js";
import type { Message } from "./sse.js";
import { Stop } from "./stop.js";

/** An event of the log. */
export type Event = components["schemas"]["Event"];

/** Which events, and behind which position. Without a position the stream begins now. */
export type EventQuery = NonNullable<operations["stream-events"]["parameters"]["query"]>;

export interface FollowOptions {
  query?: EventQuery;
  /** Ends the stream. */
  signal?: AbortSignal;
  /**
   * Told where the stream stands, also between events: when it begins, and with each heartbeat. Whoever keeps the last
   * position goes on behind it with `query.after`.
   */
  onPosition?: (position: string) => void;
}

/** The gateway sends something every 15 seconds: a stream that is silent for longer is broken. */
export const silenceMs = 45_000;
/** The longest wait between two attempts to connect. */
export const longestWaitMs = 30_000;

/** Answers after which connecting again may succeed. */
const passing = [408, 429, 500, 502, 503, 504];

/**
 * Follows the log: each event once and in order, whatever connections break meanwhile. It ends with the signal, or
 * throws a ProblemError where connecting again cannot help.
 */
export async function* follow(open: Fetch, url: string, options: FollowOptions): AsyncGenerator<Event> {
  let position = options.query?.after ?? "";
  let failures = 0;
  let pause = 0;
  while (!options.signal?.aborted) {
    const connection = new Connection(options.signal);
    let refused: Response | undefined;
    try {
      const response = await connection.open(open, url, position);
      if (!response.ok) {
        const body = await response.json().catch(() => undefined);
        if (!passing.includes(response.status)) {
          throw new ProblemError(problemOf(response, body));
        }
        refused = response;
      } else {
        for await (const message of messages(connection.chunks(response))) {
          failures = 0;
          pause = message.retry ?? pause;
          if (message.data !== "") {
            yield JSON.parse(message.data) as Event;
          }
          // The caller has taken the event: it is behind us now.
          position = moved(position, message, options);
        }
      }
    } catch (error) {
      if (error instanceof ProblemError || error instanceof TokenError || !connection.reading) {
        throw error;
      }
    } finally {
      connection.end();
    }
    if (options.signal?.aborted) {
      return;
    }
    failures++;
    const wait = retryAfter(refused, Date.now()) ?? Math.max(pause, backoff(failures, longestWaitMs, Math.random()));
    await sleep(wait, options.signal).catch(() => undefined);
  }
}

function moved(position: string, message: Message, options: FollowOptions): string {
  if (message.id === "" || message.id === position) {
    return position;
  }
  options.onPosition?.(message.id);
  return message.id;
}

/** One connection. It is broken off where nothing comes for too long. */
class Connection {
  readonly #stop: Stop;
  #reading = false;

  constructor(signal: AbortSignal | undefined) {
    this.#stop = new Stop(signal);
    this.#heard();
  }

  async open(send: Fetch, url: string, position: string): Promise<Response> {
    const headers = new Headers({ Accept: "text/event-stream" });
    if (position !== "") {
      headers.set("Last-Event-ID", position);
    }
    this.#reading = true;
    return this.#stop.wait(send(new Request(url, { headers, signal: this.#stop.signal, cache: "no-store" })));
  }

  async *chunks(response: Response): AsyncGenerator<Uint8Array> {
    this.#reading = true;
    for await (const chunk of this.#stop.chunks(response.body)) {
      this.#reading = false;
      this.#heard();
      yield chunk;
      this.#reading = true;
    }
    this.#reading = false;
  }

  /** Whether the connection is waited for: an error meanwhile is its own, and not one of what it brought. */
  get reading(): boolean {
    return this.#reading;
  }

  end(): void {
    this.#stop.end();
  }

  #heard(): void {
    this.#stop.after(silenceMs, new Error("nothing came for too long"));
  }
}
