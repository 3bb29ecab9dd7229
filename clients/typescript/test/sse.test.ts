import assert from "node:assert/strict";
import { test } from "node:test";

import { messages } from "../src/sse.js";
import type { Message } from "../src/sse.js";

async function read(text: string, size: number): Promise<Message[]> {
  const bytes = new TextEncoder().encode(text);
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += size) {
      yield bytes.subarray(at, at + size);
    }
  }
  const got: Message[] = [];
  for await (const message of messages(chunks())) {
    got.push(message);
  }
  return got;
}

// The HTML standard, 9.2.6.
const cases: Record<string, { text: string; want: Message[] }> = {
  "several lines of data": {
    text: "data: YHOO\ndata: +2\ndata: 10\n\n", want: [{ id: "", event: "", data: "YHOO\n+2\n10" }],
  },
  "a comment, an id that stays, and one space": {
    text: ": hello\n\ndata: first\nid: 1\n\ndata:second\n\ndata:  third\nid\n\n",
    want: [
      { id: "", event: "", data: "" },
      { id: "1", event: "", data: "first" },
      { id: "1", event: "", data: "second" },
      { id: "", event: "", data: " third" },
    ],
  },
  "every end of a line, a byte order mark and other alphabets": {
    text: "\uFEFFid: 7\r\nevent: añadido\rdata: Größe 🚢\n\r\nretry: 1000\nretry: soon\n\n",
    want: [{ id: "7", event: "añadido", data: "Größe 🚢" }, { id: "7", event: "", data: "", retry: 1000 }],
  },
  "what is cut off is no message": { text: "data: a\n\ndata: b\nid: 9\n", want: [{ id: "", event: "", data: "a" }] },
};

for (const [name, { text, want }] of Object.entries(cases)) {
  test(name, async () => {
    for (const size of [1, 2, 3, 7, text.length * 4]) {
      assert.deepEqual(await read(text, size), want, `in chunks of ${size} bytes`);
    }
  });
}
