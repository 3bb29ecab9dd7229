import type { Entity } from "@backstage/catalog-model";

import { annotations } from "./card.js";

/** Whether an entity stands for a subscription or a cluster of Chandler: only then it has a card. */
export function isChandlerAvailable(entity: Entity): boolean {
  const of = entity.metadata.annotations ?? {};
  return Boolean(of[annotations.subscription] ?? of[annotations.cluster]);
}
