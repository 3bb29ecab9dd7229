import type { components } from "./schema.js";

/** What the API answers in the place of what was asked for (RFC 9457). */
export type Problem = components["schemas"]["Problem"];

/** Media type of problems. */
export const problemType = "application/problem+json";

/** An answer that is no success, as an exception. Its message is that of the problem. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  /** The problem; of an answer that is none, such as a proxy's page, its status. */
  readonly problem: Problem;
  readonly status: number;

  constructor(problem: Problem) {
    super(problem.detail ?? problem.title);
    this.problem = problem;
    this.status = problem.status;
  }
}

/** The function that gives tokens failed: its error is the cause. Nothing was sent, and nothing is tried again. */
export class TokenError extends Error {
  override readonly name = "TokenError";
}

/** Makes a problem of what was answered. Only the API writes problems; what stands between may answer anything. */
export function problemOf(response: Response, body: unknown): Problem {
  const type = response.headers.get("Content-Type")?.split(";")[0];
  if (type === problemType && typeof body === "object" && body !== null && "title" in body && "status" in body) {
    return body as Problem;
  }
  return { type: "about:blank", title: response.statusText || `Status ${response.status}`, status: response.status };
}

/** Answer of a call. */
interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Waits for an answer and returns what it holds, or throws a ProblemError. */
export async function unwrap<T>(answer: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answer;
  if (!response.ok) {
    throw new ProblemError(problemOf(response, error));
  }
  return data as T;
}
