import createFetchClient from "openapi-fetch";
import type { Client, Middleware } from "openapi-fetch";

import { follow } from "./events.js";
import type { Event, FollowOptions } from "./events.js";
import { walk } from "./pages.js";
import type { Item, ListInit, ListPath } from "./pages.js";
import { TokenError, unwrap } from "./problem.js";
import { defaultRetryPolicy, idempotencyKey, retrying } from "./retry.js";
import type { Fetch, RetryPolicy } from "./retry.js";
import type { paths } from "./schema.js";

/** Where the API lies below the address of Chandler. */
const prefix = "/api/v1";

export interface Options {
  /** Address of Chandler, such as https://chandler.example.com. */
  baseUrl: string;
  /** Bearer token, or what gives one: it is asked before each request, so that tokens that end can be renewed. */
  token: string | (() => string | Promise<string>);
  /** Sends requests; by default fetch. */
  fetch?: Fetch;
  retry?: Partial<RetryPolicy>;
}

/** Client of the API: a method for each method of HTTP, whose paths, parameters and bodies are typed. */
export interface Chandler extends Client<paths> {
  /** All of a list, page by page. `limit` says how large the pages are. Throws a ProblemError. */
  list<P extends ListPath>(path: P, init?: ListInit<P>): AsyncGenerator<Item<P>>;
  /** Follows the log until the signal ends it. Throws a ProblemError where the stream is refused for good. */
  events(options?: FollowOptions): AsyncGenerator<Event>;
}

/**
 * Returns a client. Its methods return `{ data, error, response }`; `unwrap` makes an exception of an error. A POST has
 * an Idempotency-Key, unless the caller gives one; what was refused for a while, or had no answer, is sent again as far
 * as that is harmless.
 */
export function createClient(options: Options): Chandler {
  const baseUrl = options.baseUrl.replace(/\/+$/, "") + prefix;
  // Looked up at each request, so that what instruments fetch later is used.
  const send: Fetch = options.fetch ?? ((request) => globalThis.fetch(request));
  const authorized: Fetch = async (request) => {
    const token = await bearer(options.token);
    const headers = new Headers(request.headers);
    headers.set("Authorization", `Bearer ${token}`);
    return send(new Request(request, { headers }));
  };
  const client = createFetchClient<paths>({
    baseUrl,
    fetch: retrying(authorized, { ...defaultRetryPolicy, ...options.retry }),
  });
  client.use(asTheApiExpects);
  return {
    ...client,
    list: (path, init) => list(client, path, init),
    events: (following = {}) => follow(authorized, baseUrl + "/events/stream" + search(following.query), following),
  };
}

async function bearer(token: Options["token"]): Promise<string> {
  try {
    return typeof token === "string" ? token : await token();
  } catch (error) {
    throw new TokenError("there is no token for the request", { cause: error });
  }
}

/** What the API expects of every request, so that no caller need think of it. */
const asTheApiExpects: Middleware = {
  onRequest({ request }) {
    if (request.method === "POST" && !request.headers.has(idempotencyKey)) {
      request.headers.set(idempotencyKey, crypto.randomUUID());
    }
    if (request.method === "PATCH") {
      request.headers.set("Content-Type", "application/merge-patch+json");
    }
    return request;
  },
};

function list<P extends ListPath>(client: Client<paths>, path: P, init?: ListInit<P>): AsyncGenerator<Item<P>> {
  // TypeScript does not reduce the types of a path that is only known as P: ListPath has said what they are.
  type Page = { items: Item<P>[]; next?: string };
  const get = client.GET as unknown as (path: P, init: object) => Promise<{ data?: Page; response: Response }>;
  const params = (init as { params?: { query?: object } } | undefined)?.params;
  return walk<Item<P>>((cursor) => {
    const query = cursor === undefined ? params?.query : { ...params?.query, cursor };
    return unwrap<Page>(get(path, { ...init, params: { ...params, query } }));
  });
}

/** The query of a stream but its position, which is a header as soon as it moves. */
function search(query: FollowOptions["query"]): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (name !== "after" && one !== undefined && one !== null) {
        params.append(name, String(one));
      }
    }
  }
  return params.size > 0 ? `?${params}` : "";
}
