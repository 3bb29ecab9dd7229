import { coreServices, createBackendModule, readSchedulerServiceTaskScheduleDefinitionFromConfig } from "@backstage/backend-plugin-api";
import type { SchedulerServiceTaskScheduleDefinition } from "@backstage/backend-plugin-api";
import { catalogProcessingExtensionPoint } from "@backstage/plugin-catalog-node";

import { readSettings } from "./config.js";
import { ChandlerEntityProvider } from "./provider.js";

const everyFiveMinutes: SchedulerServiceTaskScheduleDefinition = { frequency: { minutes: 5 }, timeout: { minutes: 4 } };

/** Module of Backstage's catalog that brings Chandler's clusters, catalogs and operators into it. */
export default createBackendModule({
  pluginId: "catalog",
  moduleId: "chandler",
  register(env) {
    env.registerInit({
      deps: {
        catalog: catalogProcessingExtensionPoint,
        config: coreServices.rootConfig,
        logger: coreServices.logger,
        scheduler: coreServices.scheduler,
      },
      async init({ catalog, config, logger, scheduler }) {
        const given = config.getOptionalConfig("chandler.schedule");
        const schedule = given ? readSchedulerServiceTaskScheduleDefinitionFromConfig(given) : everyFiveMinutes;
        const runner = scheduler.createScheduledTaskRunner(schedule);
        catalog.addEntityProvider(new ChandlerEntityProvider(readSettings(config), logger, runner));
      },
    });
  },
});
