// A backend of Backstage in a process of its own (clients/backstage/harness), which asks a running gateway.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

export interface Backend {
  url: string;
  /** Has its catalog read Chandler again. */
  refresh(): Promise<void>;
  stop(): void;
}

/** `built` is where clients/backstage lies compiled. */
export async function startBackend(built: string): Promise<Backend> {
  const child = spawn(process.execPath, [`${built}/dist/harness/serve.js`], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  // It logs on lines between.
  const said = async (pattern: RegExp): Promise<RegExpMatchArray> => {
    for (;;) {
      const { value, done } = await lines.next();
      assert.ok(!done, "the backend has ended");
      const match = pattern.exec(value);
      if (match) {
        return match;
      }
    }
  };
  const [, url] = await said(/^serving (\S+)$/);
  assert.ok(url);
  return {
    url,
    async refresh() {
      child.stdin.write("\n");
      await said(/^refreshed$/);
    },
    stop: () => child.stdin.end(),
  };
}
