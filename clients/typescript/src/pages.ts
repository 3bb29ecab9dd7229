import type { MaybeOptionalInit } from "openapi-fetch";

import type { paths } from "./schema.js";

/** What the body of a successful GET is. */
type Body<P extends keyof paths> = paths[P] extends {
  get: { responses: { 200: { content: { "application/json": infer B } } } };
}
  ? B
  : never;

/** What the query of a GET may hold. */
type Query<P extends keyof paths> = paths[P] extends { get: { parameters: { query?: infer Q } } }
  ? NonNullable<Q>
  : never;

/** Paths that answer with pages. */
export type ListPath = {
  [P in keyof paths]: Body<P> extends { items: unknown[] } ? ("cursor" extends keyof Query<P> ? P : never) : never;
}[keyof paths];

/** One thing of a list. */
export type Item<P extends ListPath> = Body<P> extends { items: (infer T)[] } ? T : never;

/** What a list is asked with: the parameters of its GET. */
export type ListInit<P extends ListPath> = MaybeOptionalInit<paths[P], "get">;

/** A page, as far as walking needs it. */
interface Page<T> {
  items: T[];
  next?: string;
}

/** Walks through pages, each of which is asked for when the one before was taken. */
export async function* walk<T>(ask: (cursor: string | undefined) => Promise<Page<T>>): AsyncGenerator<T> {
  let cursor: string | undefined;
  do {
    const page: Page<T> = await ask(cursor);
    yield* page.items;
    cursor = page.next;
  } while (cursor);
}
