import { getCompoundEntityRef, stringifyEntityRef } from "@backstage/catalog-model";
import { InfoCard, Link, Progress, ResponseErrorPanel, StructuredMetadataTable } from "@backstage/core-components";
import { discoveryApiRef, fetchApiRef, useApi, useApiHolder } from "@backstage/core-plugin-api";
import { useEntity } from "@backstage/plugin-catalog-react";
import { useEffect, useState } from "react";
import type { ReactElement } from "react";

import { fetchCard, personTokenApiRef } from "./api.js";
import type { Card, ClusterCard, ConditionOfCard, SubscriptionCard } from "./card.js";

/** How often a card that is looked at is asked for again. */
const refreshEveryMs = 30_000;

/** What Chandler knows of the operator or the cluster that the entity of the page stands for. */
export function ChandlerCard(): ReactElement {
  const { card, error } = useCard();
  if (card === undefined) {
    return <InfoCard title="Chandler">{error ? <ResponseErrorPanel error={error} /> : <Progress />}</InfoCard>;
  }
  return (
    <InfoCard title="Chandler" subheader={subject(card)} deepLink={{ title: "Show in Chandler", link: card.link }}>
      {error && <ResponseErrorPanel title="What follows is not up to date" error={error} />}
      {card.kind === "cluster" ? <OfCluster card={card} /> : <OfSubscription card={card} />}
    </InfoCard>
  );
}

interface Answer {
  card?: Card;
  error?: Error;
}

/** The card of the page's entity; it is asked for again while the page is open. A failure leaves what was shown. */
function useCard(): Answer {
  const { entity } = useEntity();
  const discovery = useApi(discoveryApiRef);
  const fetcher = useApi(fetchApiRef);
  const persons = useApiHolder().get(personTokenApiRef);
  const ref = stringifyEntityRef(entity);
  const [answer, setAnswer] = useState<Answer & { of: string }>({ of: ref });
  useEffect(() => {
    const left = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      try {
        const sources = { discovery, fetcher, persons };
        const card = await fetchCard(sources, getCompoundEntityRef(entity), left.signal);
        if (!left.signal.aborted) {
          setAnswer({ of: ref, card });
        }
      } catch (error) {
        if (!left.signal.aborted) {
          setAnswer((before) => ({ ...(before.of === ref ? before : { of: ref }), error: asError(error) }));
        }
      }
      if (!left.signal.aborted) {
        timer = setTimeout(ask, refreshEveryMs);
      }
    };
    void ask();
    return () => {
      left.abort();
      clearTimeout(timer);
    };
    // The entity's object is another one after each look at the catalog; what is asked for is its reference.
  }, [discovery, fetcher, persons, ref]);
  return answer.of === ref ? answer : {};
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

function subject(card: Card): string {
  return card.kind === "cluster" ? card.name : `${card.package} in ${card.namespace} of ${card.cluster}`;
}

type Rows = Record<string, string | number | ReactElement>;

function OfSubscription({ card }: { card: SubscriptionCard }): ReactElement {
  const { plan, conditions } = card;
  const rows: Rows = {
    State: card.state || "nothing resolved yet",
    Installed: card.installed ? [card.installed, card.phase].filter(Boolean).join(", ") : "not yet",
    ...(card.available ? { "Newer version": card.available } : {}),
    ...(plan ? { "Install plan": <PlanLink plan={plan} /> } : {}),
    ...(card.deprecated.length > 0 ? { Deprecated: card.deprecated.join(", ") } : {}),
    ...(conditions.length > 0 ? { Conditions: <Conditions conditions={conditions} /> } : {}),
  };
  return <StructuredMetadataTable metadata={rows} options={verbatim} />;
}

function PlanLink({ plan }: { plan: NonNullable<SubscriptionCard["plan"]> }): ReactElement {
  return (
    <>
      <Link to={plan.link}>{plan.name}</Link> {plan.waits ? "waits for approval" : plan.phase}
    </>
  );
}

function Conditions({ conditions }: { conditions: ConditionOfCard[] }): ReactElement {
  return (
    <ul style={{ margin: 0, paddingLeft: "1em" }}>
      {conditions.map(({ type, status, reason, message }) => (
        <li key={type}>
          {type}: {status}
          {(message ?? reason) && ` (${message ?? reason})`}
        </li>
      ))}
    </ul>
  );
}

function OfCluster({ card }: { card: ClusterCard }): ReactElement {
  const { counts, phases } = card;
  const of = Object.entries(phases).map(([phase, n]) => `${n} ${phase}`);
  const rows: Rows = {
    State: card.message ? `${card.state}: ${card.message}` : card.state,
    ...(card.kubernetesVersion ? { Kubernetes: card.kubernetesVersion } : {}),
    Operators: of.length > 0 ? `${counts.operators}: ${of.join(", ")}` : counts.operators,
    Subscriptions: counts.subscriptions,
    "Wait for approval": counts.requiresApproval,
    Failing: counts.failing,
    "Newer version": counts.upgradeAvailable,
    Drifted: counts.drifted,
    Deprecated: counts.deprecated,
  };
  return <StructuredMetadataTable metadata={rows} options={verbatim} />;
}

/** Keys and values are shown as they are. */
const verbatim = { titleFormat: (title: string): string => title };
