import type { LoggerService, SchedulerServiceTaskRunner } from "@backstage/backend-plugin-api";
import type { Entity, EntityLink } from "@backstage/catalog-model";
import type { EntityProvider, EntityProviderConnection } from "@backstage/plugin-catalog-node";

import { unwrap } from "./client/index.js";
import type { Chandler, components } from "./client/index.js";
import { clientOf, locationOf } from "./config.js";
import type { Settings } from "./config.js";
import { catalogEntity, clusterEntity, operatorEntity } from "./entities.js";
import type { Origin } from "./entities.js";

type Subscription = components["schemas"]["Subscription"];

/** Annotations of a subscription, which lists do not have, at one of its versions. */
interface Annotated {
  version: number | undefined;
  annotations: Record<string, string>;
}

/** Brings clusters, catalogs and subscriptions of Chandler into Backstage's catalog. */
export class ChandlerEntityProvider implements EntityProvider {
  readonly #chandler: Chandler;
  readonly #origin: Origin;
  readonly #logger: LoggerService;
  readonly #schedule: SchedulerServiceTaskRunner;
  /** By stream. What has not changed is not asked for again: a fleet has many subscriptions. */
  #annotated = new Map<string, Annotated>();
  #connection: EntityProviderConnection | undefined;

  constructor(settings: Settings, logger: LoggerService, schedule: SchedulerServiceTaskRunner) {
    this.#chandler = clientOf(settings);
    this.#origin = { ...settings, location: locationOf(settings) };
    this.#logger = logger.child({ target: this.getProviderName() });
    this.#schedule = schedule;
  }

  getProviderName(): string {
    return "chandler";
  }

  async connect(connection: EntityProviderConnection): Promise<void> {
    this.#connection = connection;
    await this.#schedule.run({
      id: `${this.getProviderName()}:refresh`,
      fn: async (signal) => {
        try {
          await this.refresh(signal);
        } catch (error) {
          // What was there stays: half of a fleet is no picture of it.
          this.#logger.error(`Chandler's entities were not brought up to date: ${error}`);
        }
      },
    });
  }

  async refresh(signal?: AbortSignal): Promise<void> {
    const entities = await this.#read(signal);
    await this.#connection?.applyMutation({
      type: "full",
      entities: entities.map((entity) => ({ entity, locationKey: this.getProviderName() })),
    });
    this.#logger.info(`read ${entities.length} entities`);
  }

  async #read(signal: AbortSignal | undefined): Promise<Entity[]> {
    const init = signal ? { signal } : {};
    const entities: Entity[] = [];
    for await (const cluster of this.#chandler.list("/clusters", init)) {
      entities.push(clusterEntity(this.#origin, cluster));
    }
    for await (const catalog of this.#chandler.list("/catalogs", init)) {
      entities.push(catalogEntity(this.#origin, catalog));
    }
    const links = await this.#links(init);
    const annotated = new Map<string, Annotated>();
    for await (const subscription of this.#chandler.list("/subscriptions", init)) {
      const known = await this.#annotationsOf(subscription, init);
      if (known) {
        annotated.set(streamOf(subscription), known);
        const { catalog, package: of } = subscription.spec;
        const whole = { ...subscription, annotations: known.annotations };
        entities.push(operatorEntity(this.#origin, whole, links.get(`${catalog}/${of}`) ?? []));
      }
    }
    this.#annotated = annotated;
    return entities;
  }

  /** Where the providers of packages are found, by catalog/package. */
  async #links(init: { signal?: AbortSignal }): Promise<Map<string, EntityLink[]>> {
    const links = new Map<string, EntityLink[]>();
    for await (const { catalog, name, provider, providerURL } of this.#chandler.list("/packages", init)) {
      if (providerURL && URL.canParse(providerURL)) {
        links.set(`${catalog.name}/${name}`, [{ url: providerURL, title: provider ?? "Provider" }]);
      }
    }
    return links;
  }

  /** Undefined where the subscription has gone meanwhile. */
  async #annotationsOf(subscription: Subscription, init: { signal?: AbortSignal }): Promise<Annotated | undefined> {
    const known = this.#annotated.get(streamOf(subscription));
    const { cluster, namespace, name, version } = subscription;
    if (known && known.version === version) {
      return known;
    }
    const answer = await this.#chandler.GET("/clusters/{cluster}/namespaces/{namespace}/subscriptions/{name}", {
      ...init, params: { path: { cluster, namespace, name } },
    });
    if (answer.response.status === 404) {
      return undefined;
    }
    const { annotations = {} } = await unwrap(Promise.resolve(answer));
    return { version, annotations };
  }
}

function streamOf({ stream, cluster, namespace, name }: Subscription): string {
  return stream ?? [cluster, namespace, name].join("/");
}
