import type { RootConfigService } from "@backstage/backend-plugin-api";

import { createClient } from "./client/index.js";
import type { Chandler } from "./client/index.js";

/** What the modules are told by the section `chandler` of app-config.yaml. */
export interface Settings {
  baseUrl: string;
  /** Address of Chandler as browsers reach it, for links to its pages. */
  publicUrl: string;
  token: string;
  /** Owner of what names none. */
  owner: string;
  /** Label whose value is the group that owns what bears it. */
  ownerLabel: string;
}

export function readSettings(root: RootConfigService): Settings {
  const config = root.getConfig("chandler");
  const baseUrl = config.getString("baseUrl");
  return {
    baseUrl,
    publicUrl: config.getOptionalString("publicUrl") ?? baseUrl,
    token: config.getString("token"),
    owner: config.getOptionalString("owner") ?? "group:default/platform",
    ownerLabel: config.getOptionalString("ownerLabel") ?? "team",
  };
}

/** Where entities come from that the catalog's module brings, as Backstage refers to locations. */
export function locationOf({ baseUrl }: Settings): string {
  return `url:${baseUrl}`;
}

/** A client with the token of whoever acts; without one it is the portal's. */
export function clientOf({ baseUrl, token }: Settings, person?: string): Chandler {
  return createClient({ baseUrl, token: person ?? token });
}

/** Header with a person's token beside the portal's. */
export const onBehalfOf = "Chandler-On-Behalf-Of";

/** Attempts for what somebody waits for before a page. */
const interactiveAttempts = 2;

/** A client with the portal's token; `person` is the value of the header by which it asks for somebody. */
export function portalOf({ baseUrl, token }: Settings, person?: string): Chandler {
  const send = (request: Request): Promise<Response> => {
    if (person !== undefined) {
      request.headers.set(onBehalfOf, person);
    }
    return fetch(request);
  };
  return createClient({ baseUrl, token, fetch: send, retry: { attempts: interactiveAttempts } });
}
