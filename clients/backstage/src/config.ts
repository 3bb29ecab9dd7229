import type { RootConfigService } from "@backstage/backend-plugin-api";

import { createClient } from "./client/index.js";
import type { Chandler } from "./client/index.js";

/** What the modules are told by the section `chandler` of app-config.yaml. */
export interface Settings {
  baseUrl: string;
  token: string;
  /** Owner of what names none. */
  owner: string;
  /** Label whose value is the group that owns what bears it. */
  ownerLabel: string;
}

export function readSettings(root: RootConfigService): Settings {
  const config = root.getConfig("chandler");
  return {
    baseUrl: config.getString("baseUrl"),
    token: config.getString("token"),
    owner: config.getOptionalString("owner") ?? "group:default/platform",
    ownerLabel: config.getOptionalString("ownerLabel") ?? "team",
  };
}

/** A client with the token of whoever acts; without one it is the portal's. */
export function clientOf({ baseUrl, token }: Settings, person?: string): Chandler {
  return createClient({ baseUrl, token: person ?? token });
}
