-- Old processes may keep running: only adds columns. An old process does not keep budgets, which only this release makes.

-- What the calls of a grant may use in a window: {window, requests, bytes, llmTokens}. Null: no budget.
alter table vault_grants add column budget jsonb;
-- The window that the numbers below are about. Null before the first call.
alter table vault_grants add column budget_began timestamptz;
alter table vault_grants add column budget_requests bigint not null default 0;
alter table vault_grants add column budget_bytes bigint not null default 0;
alter table vault_grants add column budget_llm_tokens bigint not null default 0;
-- The window whose bytes have cut a call: none of them come back.
alter table vault_grants add column budget_spent timestamptz;
-- The last window for which `vault.budget.exceeded` was told.
alter table vault_grants add column budget_told timestamptz;
