// The modules in a backend of Backstage, against a running gateway, which has a cluster and a catalog of that name. The
// script backstage of cmd/chandler/cli starts them.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { mockCredentials, mockServices } from "@backstage/backend-test-utils";
import { entityEnvelopeSchemaValidator, resourceEntityV1alpha1Validator } from "@backstage/catalog-model";
import type { Entity } from "@backstage/catalog-model";

import { blind, entitiesOf, startBackend } from "../harness/backend.js";
import type { Harness } from "../harness/backend.js";
import type { ClusterCard, SubscriptionCard } from "../src/card.js";
import { createClient, unwrap } from "../src/client/index.js";
import { entityName } from "../src/entities.js";
import { tokenSecret } from "../src/subscribe.js";

const baseUrl = setting("CHANDLER_URL");
const token = setting("CHANDLER_TOKEN");
const cluster = setting("CHANDLER_TEST_CLUSTER");
const catalog = setting("CHANDLER_TEST_CATALOG");
/** What an identity provider gave a person who has no role. */
const person = readFileSync(setting("CHANDLER_TEST_PERSON_FILE"), "utf8").trim();
/** Where browsers find Chandler. */
const publicUrl = "https://chandler.example.com";
/** Sets apart what this run makes from what others made. */
const namespace = `backstage-${randomBytes(4).toString("hex")}`;
const chandler = createClient({ baseUrl, token });
let backend: Harness;

function setting(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}

/** Gives a role to whoever acts, in what the scope says; without one everywhere. */
async function bind(kind: "User" | "ServiceAccount", actor: string, role: string, scope?: object): Promise<string> {
  const name = `${role}-${kind.toLowerCase()}-${namespace}`;
  await unwrap(chandler.PUT("/rolebindings/{name}", {
    params: { path: { name } }, body: { role, subjects: [{ kind, name: actor }], ...(scope ? { scope } : {}) },
  }));
  return name;
}

/** Token of a service account that does what a portal does, and may ask for people. */
async function portalToken(): Promise<string> {
  const body = { name: `portal-${namespace}`, role: "none", kind: "ServiceAccount" } as const;
  const { token: secret, actor } = await unwrap(chandler.POST("/tokens", { body }));
  const asks = `asks-for-people-${namespace}`;
  const rules = [{ verbs: ["impersonate"], resources: ["people"] }];
  await unwrap(chandler.PUT("/roles/{name}", { params: { path: { name: asks } }, body: { rules } }));
  for (const role of [asks, "viewer", "requester"]) {
    await bind("ServiceAccount", actor, role);
  }
  return secret;
}

before(async () => {
  backend = await startBackend({ baseUrl, token: await portalToken(), publicUrl });
  const body = { name: "all", targetNamespaces: [namespace] };
  await unwrap(chandler.POST("/clusters/{cluster}/namespaces/{namespace}/operatorgroups", {
    params: { path: { cluster, namespace } }, body,
  }));
});

after(() => backend?.stop());

/** What an action was asked and what it put out. */
async function act(input: Record<string, unknown>, more: object = {}): Promise<Record<string, unknown>> {
  const output: Record<string, unknown> = {};
  await backend.actions[0]!.handler({
    input: { cluster, namespace, package: "tidegauge", catalog, ...input },
    logger: mockServices.rootLogger(),
    output: (name: string, value: unknown) => (output[name] = value),
    task: { id: `task-${namespace}` },
    ...more,
  } as any);
  return output;
}

test("the scaffolder's action subscribes, once for a task, and waits for the plan", async () => {
  assert.equal(backend.actions[0]?.id, "chandler:subscribe");
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
  await backend.refresh();
  const mutations = await backend.refresh();
  const entities = entitiesOf(mutations[1]);
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

/** Entity of Chandler's by its name, as the route names it. */
function own(...parts: string[]): string {
  return `resource/chandler/${entityName(...parts)}`;
}

/** Asks for the card of an entity. */
function ask(entity: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${backend.url}/api/chandler/entities/${entity}`, { headers });
}

test("the card of an operator has its state, its plan that waits, and links for people", async () => {
  const answer = await ask(own("operator", cluster, namespace, "tidegauge"));
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("Cache-Control"), "private, no-store");
  const card = await answer.json() as SubscriptionCard;
  assert.deepEqual([card.kind, card.cluster, card.namespace, card.name, card.package],
    ["subscription", cluster, namespace, "tidegauge", "tidegauge"]);
  const of = { params: { path: { cluster, namespace, name: "tidegauge" } } };
  const { status } = await unwrap(chandler.GET("/clusters/{cluster}/namespaces/{namespace}/subscriptions/{name}", of));
  assert.ok(status.installPlan);
  assert.equal(card.state, status.state);
  assert.deepEqual(card.plan, {
    name: status.installPlan.name, phase: "RequiresApproval", waits: true,
    link: `${publicUrl}/go/installplan/${status.installPlan.id}`,
  });
  assert.equal(card.link, `${publicUrl}/go/subscription/${cluster}/${namespace}/tidegauge`);
  assert.deepEqual(card.conditions.map((c) => c.type), (status.conditions ?? []).map((c) => c.type));
});

test("the card of a cluster has its roll-up", async () => {
  const card = await (await ask(own("cluster", cluster))).json() as ClusterCard;
  assert.deepEqual([card.kind, card.name, card.link], ["cluster", cluster, `${publicUrl}/go/cluster/${cluster}`]);
  const { total } = await unwrap(chandler.GET("/summary", { params: { query: { cluster } } }));
  assert.ok(total.requiresApproval > 0);
  assert.deepEqual({ ...card.counts, phases: card.phases }, total);
});

test("who may not see an entity in Backstage's catalog has no card of it", async () => {
  const operator = own("operator", cluster, namespace, "tidegauge");
  assert.equal((await ask(operator, { Authorization: mockCredentials.user.header(blind) })).status, 404);
  assert.equal((await ask(operator, { Authorization: mockCredentials.none.header() })).status, 401);
  assert.equal((await ask(operator, { Authorization: mockCredentials.service.header() })).status, 403);
  assert.equal((await ask(own("operator", cluster, namespace, "none"))).status, 404);
});

test("an annotation shows its own card, and only of what the catalog has from Chandler", async () => {
  const metadata = (name: string, subscription: string): Entity["metadata"] => ({
    name, annotations: { "chandler-fleet.io/subscription": subscription },
  });
  const component = { apiVersion: "backstage.io/v1alpha1", kind: "Component", spec: { type: "service" } };
  backend.others.push(
    { ...component, metadata: metadata("gauge", `${cluster}/${namespace}/tidegauge`) },
    { ...component, metadata: metadata("strange", `${cluster}/${namespace}/not-in-the-catalog`) },
    { ...component, metadata: metadata("broken", `${cluster}/${namespace}`) },
  );
  // It is there, but the catalog has not been told of it.
  await unwrap(chandler.POST("/clusters/{cluster}/namespaces/{namespace}/subscriptions", {
    params: { path: { cluster, namespace } },
    body: { name: "not-in-the-catalog", package: "tidegauge", catalog, approval: "Manual" },
  }));
  assert.equal((await ask("component/default/gauge")).status, 200);
  assert.equal((await ask("component/default/strange")).status, 404);
  assert.equal((await ask("component/default/broken")).status, 404);
});

test("an entity from elsewhere that has the name and the annotation of one of Chandler's has no card", async () => {
  const entity = (name: string, location: string): Entity => ({
    apiVersion: "backstage.io/v1alpha1", kind: "Resource", spec: { type: "operator" },
    metadata: {
      name: entityName("operator", cluster, namespace, name), namespace: "chandler",
      annotations: {
        "chandler-fleet.io/subscription": `${cluster}/${namespace}/${name}`,
        "backstage.io/managed-by-location": location,
      },
    },
  });
  for (const name of ["from-a-file", "from-chandler"]) {
    const made = await unwrap(chandler.POST("/clusters/{cluster}/namespaces/{namespace}/subscriptions", {
      params: { path: { cluster, namespace } }, body: { name, package: "tidegauge", catalog, approval: "Manual" },
    }));
    assert.ok("position" in made && made.position);
    await unwrap(chandler.GET("/clusters/{cluster}/namespaces/{namespace}/subscriptions/{name}", {
      params: { path: { cluster, namespace, name }, query: { minPosition: made.position } },
    }));
  }
  backend.others.push(
    entity("from-a-file", "url:https://git.example.com/tides/catalog-info.yaml"),
    entity("from-chandler", `url:${baseUrl}`),
  );
  assert.equal((await ask(own("operator", cluster, namespace, "from-a-file"))).status, 404);
  assert.equal((await ask(own("operator", cluster, namespace, "from-chandler"))).status, 200);
});

test("with a token of the person the card has what they may see in Chandler", async () => {
  const operator = own("operator", cluster, namespace, "tidegauge");
  const header = { "Chandler-On-Behalf-Of": `Bearer ${person}` };
  assert.equal((await ask(operator, { "Chandler-On-Behalf-Of": "Bearer guessed" })).status, 403);
  // What a person may not see is not there.
  assert.equal((await ask(operator, header)).status, 404);
  const { actor } = await unwrap(createClient({ baseUrl, token: person }).GET("/whoami"));
  const name = await bind("User", actor, "viewer", { clusters: [cluster], namespaces: [namespace] });
  try {
    assert.equal((await ask(operator, header)).status, 200);
    assert.equal((await ask(own("operator", cluster, namespace, "other"), header)).status, 404);
  } finally {
    await unwrap(chandler.DELETE("/rolebindings/{name}", { params: { path: { name } } }));
  }
});

test("what is wrong with the portal's token is not told to browsers", async () => {
  const refused = await startBackend({ baseUrl, token: "cht_revoked" });
  try {
    refused.others.push({
      apiVersion: "backstage.io/v1alpha1", kind: "Resource", spec: { type: "kubernetes-cluster" },
      metadata: {
        name: entityName("cluster", cluster), namespace: "chandler",
        annotations: {
          "chandler-fleet.io/cluster": cluster, "backstage.io/managed-by-location": `url:${baseUrl}`,
        },
      },
    });
    const answer = await fetch(`${refused.url}/api/chandler/entities/${own("cluster", cluster)}`);
    assert.equal(answer.status, 503);
    assert.doesNotMatch(await answer.text(), /token|cht_/);
  } finally {
    await refused.stop();
  }
});

test("a name that is too long for Backstage is cut, and stays its own", () => {
  const long = ["operator", "a".repeat(60), "b".repeat(60), "c"];
  const name = entityName(...long);
  assert.ok(name.length <= 63 && /^[a-z0-9][a-z0-9.-]*[a-z0-9]$/.test(name), name);
  assert.notEqual(name, entityName(...long, "d"));
});
