import { coreServices, createBackendPlugin } from "@backstage/backend-plugin-api";
import { catalogServiceRef } from "@backstage/plugin-catalog-node";

import { readSettings } from "./config.js";
import { createRouter } from "./router.js";

/** Plugin of the backend that answers the card of an entity. The portal's token stays here: browsers never have it. */
export default createBackendPlugin({
  pluginId: "chandler",
  register(env) {
    env.registerInit({
      deps: {
        catalog: catalogServiceRef,
        config: coreServices.rootConfig,
        httpAuth: coreServices.httpAuth,
        httpRouter: coreServices.httpRouter,
        logger: coreServices.logger,
      },
      async init({ catalog, config, httpAuth, httpRouter, logger }) {
        httpRouter.use(createRouter({ catalog, httpAuth, logger, settings: readSettings(config) }));
      },
    });
  },
});
