// The globals of a browser, by jsdom. A test imports this before anything of React's, which looks for them once.
import { JSDOM, VirtualConsole } from "jsdom";

const { window } = new JSDOM("<!doctype html><body></body>", {
  url: "http://127.0.0.1",
  pretendToBeVisual: true,
  // It would print each style sheet of Backstage's that it cannot parse.
  virtualConsole: new VirtualConsole(),
});
const globals = globalThis as unknown as Record<string, unknown>;
for (const name of Object.getOwnPropertyNames(window)) {
  // What Node has, such as fetch, it keeps.
  if (!(name in globals)) {
    globals[name] = (window as unknown as Record<string, unknown>)[name];
  }
}
for (const name of ["window", "document", "navigator", "Event", "EventTarget", "CustomEvent"]) {
  const value = name === "window" ? window : (window as unknown as Record<string, unknown>)[name];
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
}
for (const name of ["addEventListener", "removeEventListener", "dispatchEvent"] as const) {
  globals[name] = window[name].bind(window);
}
globals["IS_REACT_ACT_ENVIRONMENT"] = true;
// Backstage asks for the width of the window, which jsdom does not know.
window.matchMedia ??= (media: string): MediaQueryList => {
  const none = (): void => undefined;
  const listeners = { addListener: none, removeListener: none, addEventListener: none, removeEventListener: none };
  return { media, matches: false, ...listeners } as unknown as MediaQueryList;
};
