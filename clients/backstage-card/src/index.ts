// The plugin for apps of Backstage's frontend system before the new one; see alpha.ts.
export { EntityChandlerCard, chandlerPlugin } from "./plugin.js";
export { isChandlerAvailable } from "./available.js";
export { personTokenApiRef } from "./api.js";
export type { PersonTokenApi } from "./api.js";
