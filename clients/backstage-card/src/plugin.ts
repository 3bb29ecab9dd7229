import { createComponentExtension, createPlugin } from "@backstage/core-plugin-api";

/** The plugin in an app before the new frontend system. */
export const chandlerPlugin = createPlugin({ id: "chandler" });

/** The card, for the page of an entity. */
export const EntityChandlerCard = chandlerPlugin.provide(
  createComponentExtension({
    name: "EntityChandlerCard",
    component: { lazy: async () => (await import("./ChandlerCard.js")).ChandlerCard },
  }),
);
