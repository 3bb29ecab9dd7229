import { createServer, request as send } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What happens to a request on its way: nothing, or what a network, or a proxy before Chandler, does to it. */
export type Fault =
  | "pass"
  /** The gateway carries it out, and the connection breaks before its answer. */
  | "lose answer"
  /** The connection stays open, and nothing comes. */
  | "hang"
  /** The answer, or stream, breaks off behind so many bytes. */
  | { cutAfter: number }
  /** It does not reach the gateway. */
  | { refuse: number; retryAfter?: string };

/** A request as the gateway gets it. */
export interface Seen {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  at: number;
}

/** A proxy before the real gateway that does harm. */
export class Proxy {
  readonly seen: Seen[] = [];
  /** The harm of the next requests, in their order; without one they pass. */
  readonly faults: Fault[] = [];
  readonly #server: Server;
  readonly #target: URL;

  constructor(target: string) {
    this.#target = new URL(target);
    this.#server = createServer((req, res) => this.#handle(req, res));
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #handle(req: IncomingMessage, res: ServerResponse): void {
    const { method = "", url = "", headers } = req;
    this.seen.push({ method, url, headers, at: Date.now() });
    const fault = this.faults.shift() ?? "pass";
    if (typeof fault === "object" && "refuse" in fault) {
      res.writeHead(fault.refuse, fault.retryAfter === undefined ? {} : { "Retry-After": fault.retryAfter }).end();
      return;
    }
    if (fault === "hang") {
      return;
    }
    const { hostname, port } = this.#target;
    const forwarded = send({ hostname, port, method, path: url, headers }, (answer) => {
      if (fault === "lose answer") {
        answer.resume().on("end", () => res.destroy());
        return;
      }
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      let left = typeof fault === "object" ? fault.cutAfter : Infinity;
      answer.on("data", (chunk: Buffer) => {
        if (left <= 0) {
          return;
        }
        const cut = left <= chunk.length;
        res.write(chunk.subarray(0, left), () => cut && res.destroy());
        left -= chunk.length;
      });
      answer.on("end", () => left > 0 && res.end()).on("error", () => res.destroy());
    });
    forwarded.on("error", () => res.destroy());
    res.on("close", () => forwarded.destroy());
    req.pipe(forwarded);
  }
}
