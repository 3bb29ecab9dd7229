// The card as an app shows it, of what a backend of Backstage reads from a running gateway, which has a cluster and a
// catalog of that name. The script backstage of cmd/chandler/cli starts them.
import "./dom.js";

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, afterEach, before, test } from "node:test";

import type { Entity } from "@backstage/catalog-model";
import { discoveryApiRef, fetchApiRef } from "@backstage/core-plugin-api";
import type { FetchApi } from "@backstage/core-plugin-api";
import { renderTestApp } from "@backstage/frontend-test-utils";
import { EntityProvider } from "@backstage/plugin-catalog-react";
import { createTestEntityPage } from "@backstage/plugin-catalog-react/testUtils";
import { TestApiProvider, renderInTestApp } from "@backstage/test-utils";
import { cleanup, screen } from "@testing-library/react";

import { EntityChandlerCard, isChandlerAvailable, personTokenApiRef } from "../src/index.js";
import plugin, { chandlerEntityCard } from "../src/alpha.js";
import { startBackend } from "./backend.js";
import type { Backend } from "./backend.js";

const baseUrl = setting("CHANDLER_URL");
const token = setting("CHANDLER_TOKEN");
const cluster = setting("CHANDLER_TEST_CLUSTER");
const catalog = setting("CHANDLER_TEST_CATALOG");
/** Sets apart what this run makes from what others made; short, so that names of entities are not cut. */
const namespace = `card-${randomBytes(4).toString("hex")}`;
let backend: Backend;
/** What came to the browser. */
const answers: string[] = [];

function setting(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}

/** Asks Chandler as the administrator of the test. */
async function ask(path: string, body?: object): Promise<any> {
  const answer = await fetch(`${baseUrl}/api/v1${path}`, {
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    ...(body ? { method: "POST", body: JSON.stringify(body) } : {}),
  });
  assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer.json();
}

const subscriptions = `/clusters/${cluster}/namespaces/${namespace}/subscriptions`;

/** Waits until the gateway shows something. */
async function until<T>(read: () => Promise<T | undefined>): Promise<T> {
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    const found = await read();
    if (found !== undefined) {
      return found;
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error("it did not come within a minute");
}

let plan: { id: string; name: string };

before(async () => {
  backend = await startBackend(setting("CHANDLER_TEST_BACKSTAGE"));
  await ask(`/clusters/${cluster}/namespaces/${namespace}/operatorgroups`, { name: "all", targetNamespaces: [namespace] });
  const body = { name: "tidegauge", package: "tidegauge", catalog, channel: "steady", approval: "Manual" };
  const { position } = await ask(subscriptions, body);
  plan = await until(async () => (await ask(`${subscriptions}/tidegauge?minPosition=${position}`)).status.installPlan);
  await backend.refresh();
});

after(() => {
  backend?.stop();
  window.close();
  // Parts of an app watch the page for as long as it is open, and keep the process alive: it ends with its last test.
  setTimeout(() => process.exit(), 1000).unref();
});
afterEach(cleanup);

function entity(name: string, annotations: Record<string, string>): Entity {
  return {
    apiVersion: "backstage.io/v1alpha1", kind: "Resource", spec: { type: "operator" },
    metadata: { name, namespace: "chandler", annotations },
  };
}

const operator = entity(`operator.${cluster}.${namespace}.tidegauge`, {
  "chandler-fleet.io/subscription": `${cluster}/${namespace}/tidegauge`, "chandler-fleet.io/cluster": cluster,
});

const discovery = { getBaseUrl: async (plugin: string) => `${backend.url}/api/${plugin}` };
const fetcher: FetchApi = {
  fetch: async (...asked) => {
    const answer = await fetch(...asked);
    answers.push(await answer.clone().text());
    return answer;
  },
};

/** Opens the page of an entity in an app of the new frontend system. */
function open(of: Entity, more: [any, any][] = []): void {
  renderTestApp({
    extensions: [createTestEntityPage({ entity: of }), chandlerEntityCard],
    apis: [[discoveryApiRef, discovery], [fetchApiRef, fetcher], ...more] as any,
  });
}

/** Link of the page by its text, once it is there. */
async function linkTo(name: string | RegExp): Promise<string | null> {
  return (await screen.findByRole("link", { name }, { timeout: 20_000 })).getAttribute("href");
}

test("an operator's page shows its state, and the plan that waits with its link", async () => {
  const { status } = await ask(`${subscriptions}/tidegauge`);
  open(operator);
  assert.equal(await linkTo(new RegExp(plan.name)), `${baseUrl}/go/installplan/${plan.id}`);
  const text = document.body.textContent ?? "";
  for (const shown of [`tidegauge in ${namespace} of ${cluster}`, status.state, "waits for approval", "not yet"]) {
    assert.ok(text.includes(shown), `${shown} is not in: ${text}`);
  }
  for (const { type, message } of status.conditions) {
    assert.ok(text.includes(type) && text.includes(message ?? ""), `condition ${type} is not in: ${text}`);
  }
  assert.equal(await linkTo(/Show in Chandler/), `${baseUrl}/go/subscription/${cluster}/${namespace}/tidegauge`);
});

test("a cluster's page shows its roll-up", async () => {
  open(entity(`cluster.${cluster}`, { "chandler-fleet.io/cluster": cluster }));
  assert.equal(await linkTo(/Show in Chandler/), `${baseUrl}/go/cluster/${cluster}`);
  const { total } = await ask(`/summary?cluster=${cluster}`);
  assert.ok(total.requiresApproval > 0);
  const row = screen.getByText("Wait for approval").closest("tr");
  assert.equal(row?.lastElementChild?.textContent, String(total.requiresApproval));
});

test("an app before the new frontend system shows the same", async () => {
  await renderInTestApp(
    <TestApiProvider apis={[[discoveryApiRef, discovery], [fetchApiRef, fetcher]]}>
      <EntityProvider entity={operator}>
        <EntityChandlerCard />
      </EntityProvider>
    </TestApiProvider>,
  );
  assert.equal(await linkTo(new RegExp(plan.name)), `${baseUrl}/go/installplan/${plan.id}`);
});

test("an entity that stands for nothing of Chandler's has no card", async () => {
  const component = entity("gauge", {});
  assert.equal(isChandlerAvailable(component), false);
  open(component);
  await screen.findByTestId("empty-entity-page");
});

test("what the backend refuses is told", async () => {
  open(entity("operator.elsewhere", { "chandler-fleet.io/subscription": "else/where/none" }));
  await screen.findByText(/the catalog has no entity/, {}, { timeout: 20_000 });
});

test("an app that gives the person's token has Chandler ask for them", async () => {
  open(operator, [[personTokenApiRef, { getPersonToken: async () => "guessed" }]]);
  assert.ok((await screen.findAllByText(/Chandler refuses this/, {}, { timeout: 20_000 })).length > 0);
});

test("no token of Chandler's came to the browser", () => {
  assert.ok(answers.length > 0);
  assert.ok(answers.every((answer) => !answer.includes(token)));
  assert.equal(plugin.pluginId, "chandler");
});
