import { coreServices, createBackendModule } from "@backstage/backend-plugin-api";
import { scaffolderActionsExtensionPoint } from "@backstage/plugin-scaffolder-node";

import { readSettings } from "./config.js";
import { subscribeAction } from "./subscribe.js";

/** Module of Backstage's scaffolder that adds the action chandler:subscribe. */
export default createBackendModule({
  pluginId: "scaffolder",
  moduleId: "chandler",
  register(env) {
    env.registerInit({
      deps: { actions: scaffolderActionsExtensionPoint, config: coreServices.rootConfig },
      async init({ actions, config }) {
        actions.addActions(subscribeAction(readSettings(config)));
      },
    });
  },
});
