import type { CompoundEntityRef } from "@backstage/catalog-model";
import { createApiRef } from "@backstage/core-plugin-api";
import type { DiscoveryApi, FetchApi } from "@backstage/core-plugin-api";
import { ResponseError } from "@backstage/errors";

import type { Card } from "./card.js";

/** Gives what an identity provider gave the person who is signed in, as Chandler takes it. */
export interface PersonTokenApi {
  /** Undefined where there is none: then the card has what the portal may see. */
  getPersonToken(): Promise<string | undefined>;
}

/** An app that implements it has each person see what they may see in Chandler. */
export const personTokenApiRef = createApiRef<PersonTokenApi>({ id: "plugin.chandler.person-token" });

export interface CardSources {
  discovery: DiscoveryApi;
  fetcher: FetchApi;
  persons: PersonTokenApi | undefined;
}

/** Asks the backend for the card of an entity. */
export async function fetchCard(sources: CardSources, entity: CompoundEntityRef, signal: AbortSignal): Promise<Card> {
  const [address, person] = await Promise.all([
    sources.discovery.getBaseUrl("chandler"),
    sources.persons?.getPersonToken(),
  ]);
  const path = [entity.kind, entity.namespace, entity.name].map(encodeURIComponent).join("/");
  const response = await sources.fetcher.fetch(`${address}/entities/${path}`, {
    signal,
    headers: person ? { "Chandler-On-Behalf-Of": `Bearer ${person}` } : {},
  });
  if (!response.ok) {
    throw await ResponseError.fromResponse(response);
  }
  return (await response.json()) as Card;
}
