// Bundles the tests as an app bundles the plugin: the packages of Backstage's frontend are written for bundlers, and Node
// cannot load them.
import { readdirSync } from "node:fs";

import { build } from "esbuild";

const tests = readdirSync("test").filter((name) => name.endsWith(".test.tsx"));
await build({
  entryPoints: tests.map((name) => `test/${name}`),
  outdir: "dist/test",
  outExtension: { ".js": ".cjs" },
  bundle: true,
  platform: "node",
  format: "cjs",
  // package.json says that modules have no effects of their own; that of test/dom.ts has.
  ignoreAnnotations: true,
  // It reads files of its own when it runs.
  external: ["jsdom"],
  loader: { ".css": "empty", ".woff": "empty", ".woff2": "empty", ".svg": "empty" },
  define: { "process.env.NODE_ENV": '"test"' },
  logLevel: "warning",
});
