// What Chandler's clusters, catalogs and subscriptions are in Backstage's catalog: functions of values.
import { createHash } from "node:crypto";

import { ANNOTATION_LOCATION, ANNOTATION_ORIGIN_LOCATION } from "@backstage/catalog-model";
import type { Entity, EntityLink } from "@backstage/catalog-model";

import { annotations } from "./card.js";
import type { components } from "./client/index.js";

type Cluster = components["schemas"]["Cluster"];
type Catalog = components["schemas"]["Catalog"];
type Subscription = components["schemas"]["Subscription"];

/** Entities of Chandler have a namespace of their own, so that no name is another's. */
export const namespace = "chandler";

/** Annotation of a subscription that names its owner as an entity reference; goes before the label. */
const ownerAnnotation = "backstage.io/owner";

/** Where entities come from: Backstage shows it, and removes what comes from there no more. */
export interface Origin {
  /** Such as url:https://chandler.example.com */
  location: string;
  owner: string;
  ownerLabel: string;
}

/** The longest name of an entity. */
const longestName = 63;

/** Name of an entity. One that is too long is cut and ends with a digest of the whole. */
export function entityName(...parts: string[]): string {
  const name = parts.join(".");
  if (name.length <= longestName) {
    return name;
  }
  const digest = createHash("sha256").update(name).digest("hex").slice(0, 10);
  return `${name.slice(0, longestName - digest.length - 1).replace(/[-.]+$/, "")}-${digest}`;
}

export function clusterEntity(origin: Origin, cluster: Cluster): Entity {
  return resource(origin, "kubernetes-cluster", entityName("cluster", cluster.name), {
    title: cluster.name,
    description: [cluster.state, cluster.message].filter(Boolean).join(": "),
    labels: cluster.labels,
    annotations: { [annotations.cluster]: cluster.name, [annotations.state]: cluster.state },
  });
}

export function catalogEntity(origin: Origin, catalog: Catalog): Entity {
  const parts = [catalog.cluster, catalog.namespace, catalog.name].filter((part) => part !== undefined);
  return resource(origin, "operator-catalog", entityName("catalog", ...parts), {
    title: catalog.display?.name ?? parts.join("/"),
    description: `${catalog.packages} packages, ${catalog.bundles} bundles`,
    labels: catalog.labels,
    annotations: { [annotations.catalog]: parts.join("/"), [annotations.state]: catalog.state },
  });
}

/** `links` are those that the operator's authors give. */
export function operatorEntity(origin: Origin, subscription: Subscription, links: EntityLink[]): Entity {
  const { cluster, name, spec, status } = subscription;
  const at = [cluster, subscription.namespace, name];
  return resource(
    origin,
    "operator",
    entityName("operator", ...at),
    {
      title: `${spec.package} in ${subscription.namespace} of ${cluster}`,
      description: [status.installedCSV ?? "not installed yet", status.phase, status.state].filter(Boolean).join(", "),
      labels: subscription.labels,
      annotations: {
        ...subscription.annotations,
        [annotations.subscription]: at.join("/"),
        [annotations.cluster]: cluster,
        [annotations.package]: spec.package,
        [annotations.state]: status.state,
        ...(status.installedCSV ? { [annotations.csv]: status.installedCSV } : {}),
      },
      links,
    },
    [`resource:${namespace}/${entityName("cluster", cluster)}`],
  );
}

interface Described {
  title: string;
  description: string;
  labels: Record<string, string> | undefined;
  annotations: Record<string, string>;
  links?: EntityLink[];
}

function resource(origin: Origin, type: string, name: string, described: Described, dependsOn: string[] = []): Entity {
  const labels = described.labels ?? {};
  const team = labels[origin.ownerLabel];
  return {
    apiVersion: "backstage.io/v1alpha1",
    kind: "Resource",
    metadata: {
      name,
      namespace,
      title: described.title,
      description: described.description,
      labels,
      annotations: {
        ...described.annotations,
        [ANNOTATION_LOCATION]: origin.location,
        [ANNOTATION_ORIGIN_LOCATION]: origin.location,
      },
      links: described.links ?? [],
    },
    spec: {
      type,
      owner: described.annotations[ownerAnnotation] ?? (team ? `group:default/${team}` : origin.owner),
      dependsOn,
    },
  };
}
