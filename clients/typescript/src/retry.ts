import { TokenError } from "./problem.js";
import { Stop } from "./stop.js";

/** When a request is sent again. */
export interface RetryPolicy {
  /** How often a request is sent at most, the first time included. 1 sends it once. */
  attempts: number;
  /** Longest wait before it is sent again; an answer that asks for a longer one is returned. */
  maxWaitMs: number;
  /** How long an answer may take. The gateway works on a request for 30 seconds at most. */
  timeoutMs: number;
}

export const defaultRetryPolicy: RetryPolicy = { attempts: 5, maxWaitMs: 30_000, timeoutMs: 60_000 };

/** The wait before the second attempt where the answer names none; it doubles with each further one. */
export const firstWaitMs = 200;

/** Header of a POST that is carried out once however often it is sent. */
export const idempotencyKey = "Idempotency-Key";

const tooManyRequests = 429;
const conflict = 409;
/** Answers of a gateway, or a proxy before it, that is away or late. */
const away = [502, 503, 504];

/** Whether sending a request twice does no more than sending it once. */
export function repeatable(request: Request): boolean {
  return ["GET", "HEAD", "OPTIONS"].includes(request.method) || request.headers.has(idempotencyKey);
}

/**
 * How long to wait before a request is sent again, in milliseconds; undefined where its answer stands. `response` is
 * undefined where there was none. `jitter` is a number from 0 to 1.
 */
export function waitBefore(
  attempt: number, request: Request, response: Response | undefined, policy: RetryPolicy, now: number, jitter: number,
): number | undefined {
  if (attempt >= policy.attempts || !worthRepeating(request, response)) {
    return undefined;
  }
  const asked = retryAfter(response, now);
  if (asked !== undefined) {
    return asked <= policy.maxWaitMs ? asked : undefined;
  }
  return backoff(attempt, policy.maxWaitMs, jitter);
}

/** A wait that doubles with each attempt, of which up to a half is left to chance, so that many do not come at once. */
export function backoff(attempt: number, maxMs: number, jitter: number): number {
  return Math.min(firstWaitMs * 2 ** (attempt - 1), maxMs) * (1 - jitter / 2);
}

function worthRepeating(request: Request, response: Response | undefined): boolean {
  if (response === undefined) {
    return repeatable(request);
  }
  // 429 is said before anything is done.
  if (response.status === tooManyRequests) {
    return true;
  }
  // The first request with this key is still under way: its answer comes.
  if (response.status === conflict) {
    return request.headers.has(idempotencyKey) && response.headers.has("Retry-After");
  }
  return away.includes(response.status) && repeatable(request);
}

/** Retry-After in milliseconds: seconds, or a date of HTTP. */
export function retryAfter(response: Response | undefined, now: number): number | undefined {
  const value = response?.headers.get("Retry-After")?.trim();
  if (!value) {
    return undefined;
  }
  if (/^\d+$/.test(value)) {
    return Number(value) * 1000;
  }
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** Waits, or throws the reason of the signal. */
export function sleep(ms: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

export type Fetch = (request: Request) => Promise<Response>;

/** Sends requests again as the policy says. The caller's signal ends it, waits included. */
export function retrying(send: Fetch, policy: RetryPolicy): Fetch {
  return async (request) => {
    for (let attempt = 1; ; attempt++) {
      let response: Response | undefined;
      let failure: unknown;
      try {
        response = await sendOnce(send, request, policy.timeoutMs);
      } catch (error) {
        request.signal.throwIfAborted();
        if (error instanceof TokenError) {
          throw error;
        }
        failure = error;
      }
      const wait = waitBefore(attempt, request, response, policy, Date.now(), Math.random());
      if (wait !== undefined) {
        await sleep(wait, request.signal);
        continue;
      }
      if (response) {
        return response;
      }
      throw failure;
    }
  };
}

/** Sends a request and reads the whole answer: one that breaks off is no answer. */
async function sendOnce(send: Fetch, request: Request, timeoutMs: number): Promise<Response> {
  const stop = new Stop(request.signal);
  stop.after(timeoutMs, new DOMException(`no answer within ${timeoutMs / 1000} seconds`, "TimeoutError"));
  try {
    const response = await stop.wait(send(new Request(request.clone(), { signal: stop.signal })));
    const body = await stop.wait(response.arrayBuffer());
    const { status, statusText, headers } = response;
    return new Response(body.byteLength > 0 ? body : null, { status, statusText, headers });
  } finally {
    stop.end();
  }
}
