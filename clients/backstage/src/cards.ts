// What the card shows of Chandler's answers: functions of values.
import type { Entity } from "@backstage/catalog-model";

import { annotations } from "./card.js";
import type { ClusterCard, CountsOfCard, PlanOfCard, SubscriptionCard } from "./card.js";
import type { components } from "./client/index.js";
import { entityName, namespace } from "./entities.js";

type Cluster = components["schemas"]["Cluster"];
type Subscription = components["schemas"]["Subscription"];
type Counts = components["schemas"]["SummaryCounts"];

/** What an entity stands for, by its annotations. */
export type Subject =
  | { kind: "subscription"; cluster: string; namespace: string; name: string }
  | { kind: "cluster"; name: string };

/** Phase of a plan that waits for people. */
const waiting = "RequiresApproval";

/** Undefined where no annotation names a subscription or a cluster. */
export function subjectOf(entity: Entity): Subject | undefined {
  const of = entity.metadata.annotations ?? {};
  const subscription = of[annotations.subscription];
  if (subscription !== undefined) {
    const [cluster, at, name, ...more] = subscription.split("/");
    return cluster && at && name && more.length === 0
      ? { kind: "subscription", cluster, namespace: at, name }
      : undefined;
  }
  const cluster = of[annotations.cluster];
  return cluster ? { kind: "cluster", name: cluster } : undefined;
}

/** Reference of the entity that the catalog's module makes of it: only that one is its own. */
export function entityOf(subject: Subject): string {
  const name =
    subject.kind === "cluster"
      ? entityName("cluster", subject.name)
      : entityName("operator", subject.cluster, subject.namespace, subject.name);
  return `resource:${namespace}/${name}`;
}

/** `address` is Chandler's, as browsers reach it. */
export function subscriptionCard(address: string, subscription: Subscription): SubscriptionCard {
  const { cluster, namespace: at, name, spec, status } = subscription;
  const conditions = status.conditions ?? [];
  const { phase, installedCSV: installed, currentCSV: newest, installPlan: plan } = status;
  return {
    kind: "subscription",
    cluster,
    namespace: at,
    name,
    package: spec.package,
    link: pageOf(address, "subscription", cluster, at, name),
    // "Nothing is resolved" says less than why.
    state: status.state || (conditions.find((c) => c.status === "True")?.type ?? ""),
    ...(phase ? { phase } : {}),
    ...(installed ? { installed } : {}),
    ...(status.upgradeAvailable && newest && newest !== installed ? { available: newest } : {}),
    ...(plan ? { plan: planOf(address, plan) } : {}),
    deprecated: status.deprecated ?? [],
    conditions: conditions.map(({ type, status: holds, reason, message, lastTransitionTime: since }) => ({
      type,
      status: holds,
      since,
      ...(reason ? { reason } : {}),
      ...(message ? { message } : {}),
    })),
  };
}

function planOf(address: string, plan: NonNullable<Subscription["status"]["installPlan"]>): PlanOfCard {
  const { id, name, phase } = plan;
  return { name, phase, waits: phase === waiting, link: pageOf(address, "installplan", id) };
}

/** `all` is the roll-up of the cluster. */
export function clusterCard(address: string, cluster: Cluster, all: Counts): ClusterCard {
  const { name, state, message, kubernetesVersion } = cluster;
  const { operators, subscriptions, requiresApproval, failing, upgradeAvailable, drifted, deprecated, phases } = all;
  const counts: CountsOfCard = {
    operators, subscriptions, requiresApproval, failing, upgradeAvailable, drifted, deprecated,
  };
  return {
    kind: "cluster",
    name,
    link: pageOf(address, "cluster", name),
    state,
    counts,
    phases,
    ...(message ? { message } : {}),
    ...(kubernetesVersion ? { kubernetesVersion } : {}),
  };
}

/** Address for people of one thing. */
function pageOf(address: string, kind: string, ...names: string[]): string {
  return [address.replace(/\/+$/, ""), "go", kind, ...names.map(encodeURIComponent)].join("/");
}
