// Serves a backend of Backstage for tests of what asks it from elsewhere. It says its address on a line of its own, reads
// Chandler anew for each line of its input, and ends with it.
import { createInterface } from "node:readline";

import { startBackend } from "./backend.js";

const backend = await startBackend({
  baseUrl: process.env["CHANDLER_URL"] ?? "",
  token: process.env["CHANDLER_TOKEN"] ?? "",
});
await backend.refresh();
console.log(`serving ${backend.url}`);
for await (const _ of createInterface({ input: process.stdin })) {
  await backend.refresh();
  console.log("refreshed");
}
await backend.stop();
