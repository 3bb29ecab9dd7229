import { createHash } from "node:crypto";

import { createTemplateAction } from "@backstage/plugin-scaffolder-node";
import type { TemplateAction } from "@backstage/plugin-scaffolder-node";

import { unwrap } from "./client/index.js";
import type { components } from "./client/index.js";
import { clientOf } from "./config.js";
import type { Settings } from "./config.js";

type CreateSubscription = components["schemas"]["CreateSubscription"];
type Subscription = components["schemas"]["Subscription"];

/** Secret of a task that holds the token of the person who started it, so that they are who asked. */
export const tokenSecret = "CHANDLER_TOKEN";

/** How often the subscription is looked at while its plan is waited for. */
const lookEveryMs = 1000;
/** How long a plan is waited for, unless the step says so: a resolution takes seconds. */
const defaultWaitSeconds = 120;

/** States of a subscription in which no plan will come unless somebody changes something. */
const failures = ["ResolutionFailed", "BundleUnpackFailed", "InstallPlanFailed"];

/** Action that subscribes a namespace of a cluster to an operator, and waits for the install plan. */
export function subscribeAction(settings: Settings): TemplateAction<any, any, any> {
  return createTemplateAction({
    id: "chandler:subscribe",
    description: "Subscribes a namespace of a cluster to an operator and waits for the install plan",
    supportsDryRun: true,
    schema: {
      input: {
        cluster: (z) => z.string(),
        namespace: (z) => z.string(),
        package: (z) => z.string().describe("Package of the operator"),
        catalog: (z) => z.string().describe("Catalog that offers the package"),
        name: (z) => z.string().optional().describe("Of the subscription; by default that of the package"),
        channel: (z) => z.string().optional().describe("By default the package's"),
        startingCSV: (z) => z.string().optional(),
        approval: (z) => z.enum(["Automatic", "Manual"]).optional(),
        labels: (z) => z.record(z.string()).optional(),
        annotations: (z) => z.record(z.string()).optional(),
        waitSeconds: (z) => z.number().optional().describe(`For the plan; by default ${defaultWaitSeconds}, 0 for none`),
      },
      output: {
        subscription: (z) => z.string().describe("cluster/namespace/name"),
        plan: (z) => z.string().optional().describe("Name of the install plan"),
        planId: (z) => z.string().optional(),
        phase: (z) => z.string().optional().describe("Of the plan: RequiresApproval where people have to approve it"),
      },
    },
    async handler(ctx) {
      const { cluster, namespace, waitSeconds = defaultWaitSeconds, ...asked } = ctx.input;
      const name = asked.name ?? asked.package;
      const body: CreateSubscription = { ...given(asked), package: asked.package, catalog: asked.catalog, name };
      const path = { cluster, namespace };
      const chandler = clientOf(settings, ctx.secrets?.[tokenSecret]);
      const subscriptions = "/clusters/{cluster}/namespaces/{namespace}/subscriptions";
      if (ctx.isDryRun) {
        const preview = await unwrap(chandler.POST(subscriptions, { params: { path, query: { dryRun: true } }, body }));
        ctx.logger.info(`would lead to: ${JSON.stringify("items" in preview ? preview.items : preview)}`);
        return;
      }
      // A task that is run again after a crash has the same id: the intent is carried out once.
      const key = createHash("sha256").update(JSON.stringify([ctx.task.id, path, body])).digest("hex");
      const header = { "Idempotency-Key": key };
      const made = await unwrap(chandler.POST(subscriptions, { params: { path, header }, body }));
      const subscription = [cluster, namespace, body.name].join("/");
      ctx.output("subscription", subscription);
      ctx.logger.info(`subscribed ${subscription}`);
      const minPosition = "position" in made ? made.position : undefined;
      const read = (): Promise<Subscription> => unwrap(
        chandler.GET(`${subscriptions}/{name}`, {
          params: { path: { ...path, name: body.name }, query: minPosition === undefined ? {} : { minPosition } },
          ...(ctx.signal ? { signal: ctx.signal } : {}),
        }),
      );
      const plan = await planOf(read, waitSeconds);
      if (plan) {
        ctx.output("plan", plan.name);
        ctx.output("planId", plan.id);
        ctx.output("phase", plan.phase);
        ctx.logger.info(`install plan ${plan.name}: ${plan.phase}`);
      }
    },
  });
}

/** An object without what is undefined. */
function given<T extends object>(of: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(of).filter(([, value]) => value !== undefined)) as never;
}

async function planOf(
  read: () => Promise<Subscription>, waitSeconds: number,
): Promise<Subscription["status"]["installPlan"]> {
  for (const end = Date.now() + waitSeconds * 1000; Date.now() < end; ) {
    const { status, name } = await read();
    if (status.installPlan) {
      return status.installPlan;
    }
    if (failures.includes(status.state)) {
      const why = (status.conditions ?? []).find((c) => c.type === status.state)?.message;
      throw new Error(`no install plan for ${name}: ${status.state}${why ? `: ${why}` : ""}`);
    }
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
  }
  if (waitSeconds > 0) {
    throw new Error(`there was no install plan within ${waitSeconds} seconds`);
  }
  return undefined;
}
