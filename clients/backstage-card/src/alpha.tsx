// The plugin for the new frontend system: an app that finds its features by itself has the card where this is installed.
import { createFrontendPlugin } from "@backstage/frontend-plugin-api";
import type { ExtensionDefinition, OverridableFrontendPlugin } from "@backstage/frontend-plugin-api";
import { EntityCardBlueprint } from "@backstage/plugin-catalog-react/alpha";

import { isChandlerAvailable } from "./available.js";

export const chandlerEntityCard: ExtensionDefinition = EntityCardBlueprint.make({
  name: "state",
  params: {
    filter: isChandlerAvailable,
    type: "info",
    loader: async () => {
      const { ChandlerCard } = await import("./ChandlerCard.js");
      return <ChandlerCard />;
    },
  },
});

const plugin: OverridableFrontendPlugin = createFrontendPlugin({ pluginId: "chandler", extensions: [chandlerEntityCard] });

export default plugin;
