// A backend of Backstage with everything of this package in it, for tests: it listens on loopback alone, and who may see
// what in its catalog is said by the test.
import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";

import { createBackend } from "@backstage/backend-defaults";
import { rootHttpRouterServiceFactory } from "@backstage/backend-defaults/rootHttpRouter";
import { coreServices, createBackendPlugin, createServiceFactory } from "@backstage/backend-plugin-api";
import { mockServices } from "@backstage/backend-test-utils";
import type { Entity } from "@backstage/catalog-model";
import { catalogProcessingExtensionPoint, catalogServiceRef } from "@backstage/plugin-catalog-node";
import type { CatalogService, EntityProvider, EntityProviderMutation } from "@backstage/plugin-catalog-node";
import { catalogServiceMock } from "@backstage/plugin-catalog-node/testUtils";
import { scaffolderActionsExtensionPoint } from "@backstage/plugin-scaffolder-node";
import type { TemplateAction } from "@backstage/plugin-scaffolder-node";

import plugin from "../src/backend.js";
import catalogModule from "../src/catalog.js";
import scaffolderModule from "../src/scaffolder.js";

/** A user of Backstage whom its catalog shows nothing. */
export const blind = "user:default/blind";

export interface Harness {
  /** Address of the backend. */
  url: string;
  actions: TemplateAction<any, any, any>[];
  /** Has the provider read Chandler, and returns what it told the catalog each time so far. */
  refresh(): Promise<EntityProviderMutation[]>;
  /** What the catalog has besides what the provider told it. */
  others: Entity[];
  stop(): Promise<void>;
}

export async function startBackend(settings: { baseUrl: string; token: string; publicUrl?: string }): Promise<Harness> {
  const scheduler = mockServices.scheduler();
  const providers: EntityProvider[] = [];
  const actions: TemplateAction<any, any, any>[] = [];
  const mutations: EntityProviderMutation[] = [];
  const others: Entity[] = [];
  const known = (): Entity[] => [...entitiesOf(mutations.at(-1)), ...others];
  let address: AddressInfo | undefined;
  // Not startTestBackend: its server listens on every interface.
  const backend = createBackend();
  const services = [
    mockServices.auth.factory(),
    mockServices.httpAuth.factory(),
    mockServices.rootConfig.factory({
      data: { chandler: { ...settings }, backend: { baseUrl: "http://127.0.0.1", listen: "127.0.0.1:0" } },
    }),
    mockServices.rootLogger.factory(),
    createServiceFactory({ service: coreServices.scheduler, deps: {}, factory: () => scheduler }),
    createServiceFactory({ service: catalogServiceRef, deps: {}, factory: () => catalogOf(known) }),
    rootHttpRouterServiceFactory({
      configure({ applyDefaults, server }) {
        applyDefaults();
        server.on("listening", () => (address = server.address() as AddressInfo));
      },
    }),
  ];
  const catalog = createBackendPlugin({
    pluginId: "catalog",
    register(env) {
      const point = { addEntityProvider: (...p: any[]) => providers.push(...p.flat()) };
      env.registerExtensionPoint(catalogProcessingExtensionPoint, point as any);
      env.registerInit({ deps: {}, init: async () => undefined });
    },
  });
  const scaffolder = createBackendPlugin({
    pluginId: "scaffolder",
    register(env) {
      env.registerExtensionPoint(scaffolderActionsExtensionPoint, { addActions: (...a) => actions.push(...a) });
      env.registerInit({ deps: {}, init: async () => undefined });
    },
  });
  for (const feature of [...services, catalog, scaffolder, plugin, catalogModule, scaffolderModule]) {
    backend.add(feature);
  }
  await backend.start();
  assert.ok(address, "the backend does not listen");
  assert.equal(providers.length, 1);
  const applyMutation = async (m: EntityProviderMutation): Promise<void> => void mutations.push(m);
  await providers[0]!.connect({ applyMutation, refresh: async () => undefined });
  return {
    url: `http://127.0.0.1:${address.port}`,
    actions,
    others,
    async refresh() {
      await scheduler.triggerTask("chandler:refresh");
      return mutations;
    },
    stop: () => backend.stop(),
  };
}

export function entitiesOf(mutation: EntityProviderMutation | undefined): Entity[] {
  return mutation?.type === "full" ? mutation.entities.map((e) => e.entity) : [];
}

/** Backstage's catalog in memory, which asks for nobody's right, with one who has none. */
function catalogOf(entities: () => Entity[]): CatalogService {
  const service: Pick<CatalogService, "getEntityByRef"> = {
    async getEntityByRef(ref, { credentials }) {
      const { userEntityRef } = credentials.principal as { userEntityRef?: string };
      return userEntityRef === blind ? undefined : catalogServiceMock({ entities: entities() }).getEntityByRef(ref);
    },
  };
  return service as CatalogService;
}
