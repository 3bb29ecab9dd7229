// The modules in a backend of Backstage, against a running gateway, which has a cluster and a catalog of that name. The
// script backstage of cmd/chandler/cli starts them.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";

import type { Entity } from "@backstage/catalog-model";
import { entityEnvelopeSchemaValidator, resourceEntityV1alpha1Validator } from "@backstage/catalog-model";
import { coreServices, createServiceFactory } from "@backstage/backend-plugin-api";
import { mockServices, startTestBackend } from "@backstage/backend-test-utils";
import type { TestBackend } from "@backstage/backend-test-utils";
import { catalogProcessingExtensionPoint } from "@backstage/plugin-catalog-node";
import type { EntityProvider, EntityProviderMutation } from "@backstage/plugin-catalog-node";
import { scaffolderActionsExtensionPoint } from "@backstage/plugin-scaffolder-node";
import type { TemplateAction } from "@backstage/plugin-scaffolder-node";

import catalogModule from "../src/catalog.js";
import { createClient, unwrap } from "../src/client/index.js";
import { entityName } from "../src/entities.js";
import scaffolderModule from "../src/scaffolder.js";
import { tokenSecret } from "../src/subscribe.js";

const baseUrl = setting("CHANDLER_URL");
const token = setting("CHANDLER_TOKEN");
const cluster = setting("CHANDLER_TEST_CLUSTER");
const catalog = setting("CHANDLER_TEST_CATALOG");
/** Sets apart what this run makes from what others made. */
const namespace = `backstage-${randomBytes(4).toString("hex")}`;
const chandler = createClient({ baseUrl, token });
let backend: TestBackend;
const scheduler = mockServices.scheduler();
const providers: EntityProvider[] = [];
const actions: TemplateAction<any, any, any>[] = [];

function setting(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}

before(async () => {
  backend = await startTestBackend({
    extensionPoints: [
      [catalogProcessingExtensionPoint, { addEntityProvider: (...p: any[]) => providers.push(...p.flat()) } as any],
      [scaffolderActionsExtensionPoint, { addActions: (...a: TemplateAction<any, any, any>[]) => actions.push(...a) }],
    ],
    features: [
      catalogModule,
      scaffolderModule,
      createServiceFactory({ service: coreServices.scheduler, deps: {}, factory: () => scheduler }),
      mockServices.rootConfig.factory({ data: { chandler: { baseUrl, token } } }),
    ],
  });
  const body = { name: "all", targetNamespaces: [namespace] };
  await unwrap(chandler.POST("/clusters/{cluster}/namespaces/{namespace}/operatorgroups", {
    params: { path: { cluster, namespace } }, body,
  }));
});

after(() => backend.stop());

/** What an action was asked and what it put out. */
async function act(input: Record<string, unknown>, more: object = {}): Promise<Record<string, unknown>> {
  const output: Record<string, unknown> = {};
  await actions[0]!.handler({
    input: { cluster, namespace, package: "tidegauge", catalog, ...input },
    logger: mockServices.rootLogger(),
    output: (name: string, value: unknown) => (output[name] = value),
    task: { id: `task-${namespace}` },
    ...more,
  } as any);
  return output;
}

test("the scaffolder's action subscribes, once for a task, and waits for the plan", async () => {
  assert.equal(actions[0]?.id, "chandler:subscribe");
  const input = {
    channel: "steady", approval: "Manual", labels: { team: "tides" }, annotations: { "tides.example.com/why": "springs" },
  };
  assert.deepEqual(await act(input, { isDryRun: true }), {});
  const first = await act(input);
  assert.equal(first["subscription"], `${cluster}/${namespace}/tidegauge`);
  assert.match(String(first["plan"]), /^install-\w+$/);
  assert.equal(first["phase"], "RequiresApproval");
  assert.deepEqual(await act(input), first);
});

test("what cannot be resolved fails with its reason, and a person's token is theirs", async () => {
  await assert.rejects(act({ package: "no-such-package", name: "none" }), /no-such-package/);
  const secrets = { [tokenSecret]: "cht_wrong" };
  await assert.rejects(act({ name: "other" }, { secrets }), { name: "ProblemError", status: 401 });
});

test("the catalog's provider gives clusters, catalogs and operators, as Backstage wants them", async () => {
  assert.equal(providers.length, 1);
  const mutations: EntityProviderMutation[] = [];
  const applyMutation = async (m: EntityProviderMutation): Promise<void> => void mutations.push(m);
  await providers[0]!.connect({ applyMutation, refresh: async () => undefined });
  await scheduler.triggerTask("chandler:refresh");
  await scheduler.triggerTask("chandler:refresh");
  const mutation = mutations[1];
  assert.equal(mutation?.type, "full");
  const entities = (mutation as { entities: { entity: Entity }[] }).entities.map((e) => e.entity);
  const envelope = entityEnvelopeSchemaValidator();
  for (const entity of entities) {
    envelope(entity);
    assert.ok(await resourceEntityV1alpha1Validator.check(entity), entity.metadata.name);
  }
  const named = new Map(entities.map((e) => [e.metadata.name, e]));
  assert.equal(named.size, entities.length);
  assert.equal(named.get(entityName("cluster", cluster))?.spec?.["type"], "kubernetes-cluster");
  assert.equal(named.get(entityName("catalog", catalog))?.metadata.annotations?.["chandler-fleet.io/state"], "Ready");
  const operator = named.get(entityName("operator", cluster, namespace, "tidegauge"));
  assert.equal(operator?.spec?.["owner"], "group:default/tides");
  assert.deepEqual(operator?.spec?.["dependsOn"], [`resource:chandler/${entityName("cluster", cluster)}`]);
  assert.deepEqual(operator?.metadata.labels, { team: "tides" });
  assert.equal(operator?.metadata.annotations?.["tides.example.com/why"], "springs");
});

test("a name that is too long for Backstage is cut, and stays its own", () => {
  const long = ["operator", "a".repeat(60), "b".repeat(60), "c"];
  const name = entityName(...long);
  assert.ok(name.length <= 63 && /^[a-z0-9][a-z0-9.-]*[a-z0-9]$/.test(name), name);
  assert.notEqual(name, entityName(...long, "d"));
});
