import type { BackstageCredentials, HttpAuthService, LoggerService } from "@backstage/backend-plugin-api";
import { NotAllowedError, NotFoundError, ServiceUnavailableError } from "@backstage/errors";
import { ANNOTATION_LOCATION } from "@backstage/catalog-model";
import type { CatalogService } from "@backstage/plugin-catalog-node";
import express from "express";
import type { NextFunction, Request, Response } from "express";

import type { Card } from "./card.js";
import { clusterCard, entityOf, subjectOf, subscriptionCard } from "./cards.js";
import type { Subject } from "./cards.js";
import { ProblemError, unwrap } from "./client/index.js";
import type { Chandler } from "./client/index.js";
import { locationOf, onBehalfOf, portalOf } from "./config.js";
import type { Settings } from "./config.js";

/** How long the page of an entity waits for its card. */
const cardTimeoutMs = 10_000;

export interface RouterOptions {
  catalog: CatalogService;
  httpAuth: HttpAuthService;
  logger: LoggerService;
  settings: Settings;
}

/** Route of the card: GET /entities/KIND/NAMESPACE/NAME. */
export function createRouter({ catalog, httpAuth, logger, settings }: RouterOptions): express.Router {
  const router = express.Router();
  router.get("/entities/:kind/:namespace/:name", async (req: Request, res: Response, next: NextFunction) => {
    const stop = new AbortController();
    // Not AbortSignal.timeout in AbortSignal.any, which Node's garbage collector may take apart.
    const late = setTimeout(() => stop.abort(new DOMException("the card took too long", "TimeoutError")), cardTimeoutMs);
    res.on("close", () => {
      clearTimeout(late);
      stop.abort();
    });
    try {
      const credentials = await httpAuth.credentials(req, { allow: ["user"] });
      const { kind, namespace, name } = req.params as { kind: string; namespace: string; name: string };
      const subject = await seenSubject(catalog, credentials, locationOf(settings), `${kind}:${namespace}/${name}`);
      const person = req.header(onBehalfOf);
      const card = await read(portalOf(settings, person), subject, settings.publicUrl, stop.signal).catch((error: unknown) => {
        throw refusal(error, person !== undefined, logger);
      });
      // It is this person's, and old the next moment.
      res.set("Cache-Control", "private, no-store").json(card);
    } catch (error) {
      next(error);
    }
  });
  return router;
}

/**
 * What the entity stands for. The person has to see the entity, and the one that Chandler's module made of the same thing:
 * whoever may write an annotation into a file of theirs must not read by it what they could not see. Nor
 * does a file of theirs with the name of such an entity do: Backstage writes into each entity where it comes from.
 */
async function seenSubject(
  catalog: CatalogService, credentials: BackstageCredentials, location: string, ref: string,
): Promise<Subject> {
  const entity = await catalog.getEntityByRef(ref, { credentials });
  if (!entity) {
    throw new NotFoundError(`the catalog has no entity ${ref}`);
  }
  const subject = subjectOf(entity);
  if (!subject) {
    throw new NotFoundError(`no annotation of ${ref} names a subscription or a cluster of Chandler`);
  }
  const own = await catalog.getEntityByRef(entityOf(subject), { credentials });
  const owns = own && subjectOf(own);
  if (!owns || entityOf(owns) !== entityOf(subject) || own.metadata.annotations?.[ANNOTATION_LOCATION] !== location) {
    throw new NotFoundError(`the catalog has no entity ${entityOf(subject)}, which ${ref} refers to`);
  }
  return subject;
}

async function read(chandler: Chandler, subject: Subject, address: string, signal: AbortSignal): Promise<Card> {
  if (subject.kind === "subscription") {
    const { cluster, namespace, name } = subject;
    const path = "/clusters/{cluster}/namespaces/{namespace}/subscriptions/{name}";
    const params = { path: { cluster, namespace, name } };
    return subscriptionCard(address, await unwrap(chandler.GET(path, { params, signal })));
  }
  const cluster = subject.name;
  const [one, summary] = await Promise.all([
    unwrap(chandler.GET("/clusters/{cluster}", { params: { path: { cluster } }, signal })),
    unwrap(chandler.GET("/summary", { params: { query: { by: "cluster", cluster } }, signal })),
  ]);
  return clusterCard(address, one, summary.total);
}

/** What Backstage tells the person. That Chandler refuses the portal's token is no fault of theirs. */
function refusal(error: unknown, forPerson: boolean, logger: LoggerService): Error {
  if (error instanceof ProblemError) {
    if (error.status === 404) {
      return new NotFoundError(error.message);
    }
    if (error.status === 403 || (error.status === 401 && forPerson)) {
      return new NotAllowedError(`Chandler refuses this: ${error.message}`);
    }
    logger.error(`Chandler answered the portal with ${error.status}: ${error.message}`);
    return new ServiceUnavailableError(`Chandler answered with ${error.status}`);
  }
  logger.error(`Chandler gave no answer: ${error}`);
  return new ServiceUnavailableError("Chandler does not answer");
}
