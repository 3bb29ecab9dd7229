// The client against a running gateway, whose address and administrator's token stand in the environment; the test of
// cmd/chandler/cli starts one. A proxy before it loses answers, breaks connections and refuses.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { createClient, ProblemError, TokenError, unwrap } from "../src/index.js";
import type { Chandler, Event, Options } from "../src/index.js";
import { Proxy } from "./proxy.js";

const url = setting("CHANDLER_URL");
const token = setting("CHANDLER_TOKEN");
/** Sets apart what this run makes from what others made. */
const run = randomBytes(4).toString("hex");
const proxy = new Proxy(url);
let baseUrl: string;
let chandler: Chandler;

function setting(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}

function client(options: Partial<Options> = {}): Chandler {
  return createClient({ baseUrl, token, ...options });
}

before(async () => {
  baseUrl = await proxy.listen();
  chandler = client();
});
beforeEach(() => {
  proxy.seen.length = 0;
  proxy.faults.length = 0;
});
after(() => proxy.close());

/** Adds a catalog whose source is not there, and returns the position of the write. */
async function addCatalog(name: string, through = chandler, labels: Record<string, string> = {}): Promise<string> {
  const source = { type: "directory", path: `/nowhere/${name}` } as const;
  const made = await unwrap(through.POST("/catalogs", { body: { name, source, labels } }));
  assert.ok("name" in made); // and no operation, which Prefer asks for
  assert.equal(made.name, name);
  return made.position!;
}

async function removeCatalogs(...names: string[]): Promise<void> {
  for (const catalog of names) {
    await unwrap(chandler.DELETE("/catalogs/{catalog}", { params: { path: { catalog } } }));
  }
}

test("an address may end with a slash, and the caller is told who they are", async () => {
  const who = await unwrap(client({ baseUrl: `${baseUrl}/` }).GET("/whoami"));
  assert.equal(who.actor, "token-admin");
});

test("a problem is typed, and thrown by unwrap", async () => {
  const path = { cluster: "nowhere" };
  const { error, response } = await chandler.GET("/clusters/{cluster}", { params: { path } });
  assert.equal(response.status, 404);
  assert.match(error?.type ?? "", /not-found/);
  await assert.rejects(unwrap(chandler.GET("/clusters/{cluster}", { params: { path } })), (thrown: unknown) => {
    assert.ok(thrown instanceof ProblemError);
    assert.equal(thrown.status, 404);
    assert.match(thrown.message, /nowhere/);
    return true;
  });
  await assert.rejects(unwrap(client({ token: "cht_wrong" }).GET("/whoami")), { name: "ProblemError", status: 401 });
});

test("an answer that is no problem, such as a proxy's, is an error with its status", async () => {
  proxy.faults.push({ refuse: 502 });
  const once = client({ retry: { attempts: 1 } });
  await assert.rejects(unwrap(once.GET("/whoami")), { name: "ProblemError", status: 502, message: "Bad Gateway" });
});

test("a function gives the token of each request, and its failure is the caller's", async () => {
  let asked = 0;
  const renewing = client({ token: async () => (asked++, token) });
  await unwrap(renewing.GET("/whoami"));
  await unwrap(renewing.GET("/whoami"));
  assert.equal(asked, 2);
  const cause = new Error("the provider is away");
  const failing = client({ token: () => Promise.reject(cause) });
  await assert.rejects(unwrap(failing.GET("/whoami")), (thrown) => thrown instanceof TokenError && thrown.cause === cause);
  await assert.rejects(failing.events().next(), TokenError);
});

test("a POST whose answer is lost is sent again with its key, and carried out once", async () => {
  proxy.faults.push("lose answer", { cutAfter: 10 });
  const name = `ts-once-${run}`;
  const made = await unwrap(chandler.POST("/tokens", { body: { name, role: "viewer" } }));
  const keys = proxy.seen.map((s) => s.headers["idempotency-key"]);
  assert.equal(keys.length, 3);
  assert.equal(new Set(keys).size, 1);
  assert.match(String(keys[0]), /^[0-9a-f-]{36}$/);
  const tokens = [];
  for await (const t of chandler.list("/tokens")) {
    if (t.name === name) {
      tokens.push(t.id);
    }
  }
  assert.deepEqual(tokens, [made.id]);
  await unwrap(chandler.DELETE("/tokens/{id}", { params: { path: { id: made.id } } }));
});

test("the caller's own key is kept", async () => {
  const header = { "Idempotency-Key": `own-${run}` };
  const body = { name: `ts-own-${run}`, role: "viewer" } as const;
  const first = await unwrap(chandler.POST("/tokens", { params: { header }, body }));
  const again = await chandler.POST("/tokens", { params: { header }, body });
  assert.equal(again.response.headers.get("Idempotent-Replayed"), "true");
  assert.equal(again.data?.id, first.id);
  const other = await chandler.POST("/tokens", { params: { header }, body: { ...body, name: "other" } });
  assert.equal(other.response.status, 422);
  await unwrap(chandler.DELETE("/tokens/{id}", { params: { path: { id: first.id } } }));
});

test("what is refused for a while is sent again after Retry-After", async () => {
  proxy.faults.push({ refuse: 429, retryAfter: "1" }, { refuse: 503, retryAfter: new Date(Date.now()).toUTCString() });
  await unwrap(chandler.GET("/whoami"));
  assert.equal(proxy.seen.length, 3);
  assert.ok(proxy.seen[1]!.at - proxy.seen[0]!.at >= 990, "the wait that was asked for");
});

test("a wait that is too long is the caller's, and attempts have an end", async () => {
  proxy.faults.push({ refuse: 503, retryAfter: "3600" });
  assert.equal((await chandler.GET("/whoami")).response.status, 503);
  assert.equal(proxy.seen.length, 1);
  proxy.faults.push({ refuse: 503 }, { refuse: 503 });
  assert.equal((await client({ retry: { attempts: 2 } }).GET("/whoami")).response.status, 503);
  assert.equal(proxy.seen.length, 3);
});

test("a replacement whose answer is lost is not sent again", async () => {
  const name = `ts-replaced-${run}`;
  const body = { approvers: 2, selector: { clusters: [name] } }; // none: no plan of anybody else waits for it
  proxy.faults.push("lose answer");
  const sent = chandler.PUT("/approvalpolicies/{name}", {
    params: { path: { name }, header: { "If-None-Match": "*" } }, body,
  });
  await assert.rejects(sent, TypeError);
  assert.equal(proxy.seen.length, 1);
  await unwrap(chandler.DELETE("/approvalpolicies/{name}", { params: { path: { name } } }));
});

test("a change of parts is a merge patch, with the version that was read", async () => {
  const path = { catalog: `ts-patched-${run}` };
  const query = { minPosition: await addCatalog(path.catalog) };
  const read = await chandler.GET("/catalogs/{catalog}", { params: { path, query } });
  const header = { "If-Match": read.response.headers.get("ETag")! };
  const body = { labels: { tier: "1" } };
  const changed = await unwrap(chandler.PATCH("/catalogs/{catalog}", { params: { path, header }, body }));
  assert.ok("labels" in changed, "the answer is the catalog, and not the preview of a dry run");
  assert.equal(changed.labels?.["tier"], "1");
  const late = await chandler.PATCH("/catalogs/{catalog}", { params: { path, header }, body });
  assert.equal(late.response.status, 412);
  await removeCatalogs(path.catalog);
});

test("a list is walked page by page, and no further than it is read", async () => {
  const names = [1, 2, 3, 4, 5].map((n) => `ts-page-${n}-${run}`);
  const paged = `paged-${run}`;
  let minPosition = "";
  for (const name of names) {
    minPosition = await addCatalog(name, chandler, { paged });
  }
  const query = { limit: 2, label: `paged=${paged}`, minPosition };
  const seen: string[] = [];
  proxy.seen.length = 0;
  for await (const catalog of chandler.list("/catalogs", { params: { query } })) {
    seen.push(catalog.name);
  }
  assert.deepEqual(seen, names);
  assert.equal(proxy.seen.length, 3);
  for await (const catalog of chandler.list("/catalogs", { params: { query } })) {
    assert.equal(catalog.name, names[0]);
    break;
  }
  assert.equal(proxy.seen.length, 4);
  await assert.rejects(chandler.list("/catalogs", { params: { query: { cursor: "none" } } }).next(), ProblemError);
  await removeCatalogs(...names);
});

test("events come once and in order, whatever connections break", { timeout: 300_000 }, async () => {
  const stop = new AbortController();
  const positions: string[] = [];
  let begun = (): void => undefined;
  const ready = new Promise<void>((resolve) => (begun = resolve));
  // The first connection ends behind the first events, in the middle of one; the next ones are refused and cut at once.
  proxy.faults.push({ cutAfter: 1500 }, { refuse: 503, retryAfter: "1" }, { cutAfter: 40 }, { refuse: 502 });
  const got: Event[] = [];
  const following = (async () => {
    const options = {
      query: { type: ["catalog.added.v1"] },
      signal: stop.signal,
      onPosition: (position: string) => (positions.push(position), begun()),
    };
    for await (const event of chandler.events(options)) {
      got.push(event);
      if (got.filter((e) => e.subject.endsWith(run)).length === 8) {
        stop.abort();
      }
    }
  })();
  await ready;
  const direct = createClient({ baseUrl: url, token });
  const names = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `ts-event-${n}-${run}`);
  for (const name of names) {
    await addCatalog(name, direct);
  }
  await following;
  assert.deepEqual(got.map((e) => e.subject).filter((s) => s.endsWith(run)), names);
  assert.ok(got.every((e) => e.type === "catalog.added.v1"));
  const connected = proxy.seen.filter((s) => s.url.startsWith("/api/v1/events/stream"));
  assert.ok(connected.length >= 5, `${connected.length} connections`);
  assert.equal(connected[0]!.headers["last-event-id"], undefined);
  assert.ok(connected.slice(1).every((s) => s.headers["last-event-id"]));
  // Whoever kept a position goes on behind it.
  const since = chandler.events({ query: { type: ["catalog.added.v1"], after: got[3]!.sequence } });
  assert.equal((await since.next()).value?.id, got[4]!.id);
  await since.return(undefined);
  await removeCatalogs(...names);
});

test("a stream that is refused for good says why", async () => {
  await assert.rejects(client({ token: "cht_wrong" }).events().next(), { name: "ProblemError", status: 401 });
  await assert.rejects(chandler.events({ query: { after: "far" } }).next(), { name: "ProblemError", status: 400 });
});

// A signal has to reach what waits, whatever of the requests between them the garbage collector takes.
test("a signal ends a stream on which nothing happens", { timeout: 60_000 }, async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const collecting = setInterval(collect, 5);
  try {
    for (const signal of [AbortSignal.timeout(100), AbortSignal.any([AbortSignal.timeout(200)])]) {
      for await (const event of chandler.events({ signal })) {
        assert.ok(event.id, "others may write meanwhile");
      }
      assert.ok(signal.aborted);
    }
  } finally {
    clearInterval(collecting);
  }
});

test("an answer that does not come is given up, and the caller's signal ends the wait for it", { timeout: 60_000 }, async () => {
  proxy.faults.push("hang", "hang");
  const late = client({ retry: { attempts: 1, timeoutMs: 100 } });
  await assert.rejects(late.GET("/whoami"), { name: "TimeoutError", message: "no answer within 0.1 seconds" });
  await assert.rejects(chandler.GET("/whoami", { signal: AbortSignal.timeout(100) }), { name: "TimeoutError" });
});
