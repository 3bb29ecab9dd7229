-- compatible: 25
-- Subscriptions know which fleet subscription asks for them, and how far a rollout lets them go. The table has no row:
-- read models are made of its shape (ADR 0043).
alter table gateway.subscriptions
  add column owner  text not null default '', -- name of the fleet subscription
  add column target jsonb;                    -- model.SubscriptionTarget; null without one
