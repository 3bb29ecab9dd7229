export { createClient } from "./client.js";
export type { Chandler, Options } from "./client.js";
export type { Event, EventQuery, FollowOptions } from "./events.js";
export type { Item, ListInit, ListPath } from "./pages.js";
export { ProblemError, TokenError, unwrap } from "./problem.js";
export type { Problem } from "./problem.js";
export { defaultRetryPolicy } from "./retry.js";
export type { RetryPolicy } from "./retry.js";
export type { components, operations, paths } from "./schema.js";
