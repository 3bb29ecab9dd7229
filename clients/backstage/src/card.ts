// What the backend and the card in the browser know of each other; clients/backstage-card has a copy.

/** Annotations by which other plugins find what an entity stands for. */
export const annotations = {
  cluster: "chandler-fleet.io/cluster",
  catalog: "chandler-fleet.io/catalog",
  /** cluster/namespace/name */
  subscription: "chandler-fleet.io/subscription",
  package: "chandler-fleet.io/package",
  state: "chandler-fleet.io/state",
  csv: "chandler-fleet.io/csv",
} as const;

/** The answer for an entity that stands for something of Chandler's. */
export type Card = SubscriptionCard | ClusterCard;

export interface SubscriptionCard {
  kind: "subscription";
  cluster: string;
  namespace: string;
  name: string;
  package: string;
  /** Page of it, for people. */
  link: string;
  /** As Chandler's lists show it; empty while nothing is known. */
  state: string;
  /** Of what is installed: health is read here. */
  phase?: string;
  installed?: string;
  /** A newer version than the installed one. */
  available?: string;
  plan?: PlanOfCard;
  /** What its catalog has deprecated of it. */
  deprecated: string[];
  conditions: ConditionOfCard[];
}

export interface PlanOfCard {
  name: string;
  phase: string;
  /** Whether it waits for people. */
  waits: boolean;
  link: string;
}

export interface ConditionOfCard {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  since: string;
}

export interface ClusterCard {
  kind: "cluster";
  name: string;
  link: string;
  state: string;
  message?: string;
  kubernetesVersion?: string;
  counts: CountsOfCard;
  /** Installed operators by phase. */
  phases: Record<string, number>;
}

export interface CountsOfCard {
  operators: number;
  subscriptions: number;
  requiresApproval: number;
  failing: number;
  upgradeAvailable: number;
  drifted: number;
  deprecated: number;
}
