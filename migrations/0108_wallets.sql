-- Old processes may keep running: only adds tables. An old process does not sign.

-- Wallets of agents (docs/reference/commerce.md, Wallets). A wallet stays when its agent is deleted, because it may
-- hold assets.
create table wallets (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  agent_id uuid not null,
  -- EIP-55.
  address text not null check (address ~ '^0x[0-9a-fA-F]{40}$'),
  -- The private key, sealed with the data key of the tenant and bound to this row.
  key_sealed bytea not null,
  status text not null default 'active' check (status in ('active', 'frozen')),
  -- Lower case. Null: every recipient.
  recipients text[],
  -- CAIP-10, lower case: contracts that transactions may call.
  contracts text[] not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  frozen_at timestamptz,
  primary key (tenant_id, id),
  unique (tenant_id, agent_id),
  check ((status = 'frozen') = (frozen_at is not null))
);
create index wallets_listed on wallets (tenant_id, created_at desc, id desc);

-- What a wallet may spend of an asset. An asset without a row cannot be spent.
create table wallet_budgets (
  tenant_id uuid not null,
  wallet_id uuid not null,
  -- CAIP-2.
  network text not null,
  -- Contract address in lower case, or `native` for the currency of the network.
  asset text not null check (asset = 'native' or asset ~ '^0x[0-9a-f]{40}$'),
  -- Atomic units of the asset.
  payment_max numeric(78) not null check (payment_max > 0),
  window_max numeric(78) not null check (window_max >= payment_max),
  window_secs integer not null check (window_secs between 60 and 31536000),
  primary key (tenant_id, wallet_id, network, asset),
  foreign key (tenant_id, wallet_id) references wallets (tenant_id, id) on delete cascade
);

-- What a wallet has signed. A signature that left the service has a row here.
create table wallet_signatures (
  tenant_id uuid not null,
  id uuid not null,
  wallet_id uuid not null,
  agent_id uuid not null,
  kind text not null check (kind in ('x402_payment', 'transaction')),
  network text not null,
  -- The contract that is called. Null for a transfer of the native currency.
  contract text,
  -- Who receives the amount: a payee, or the contract that is called.
  recipient text not null,
  asset text not null,
  amount numeric(78) not null check (amount >= 0),
  -- The most that the transaction costs in native currency besides the amount. 0 for a payment.
  fee_max numeric(78) not null check (fee_max >= 0),
  -- EIP-712 hash of an authorization, hash of a transaction.
  hash text not null,
  -- EIP-3009 nonce, or nonce of the account.
  nonce text not null,
  -- After this an authorization cannot be spent. Null for a transaction.
  valid_before timestamptz,
  -- URL of what is paid, without query.
  resource text,
  created_at timestamptz not null,
  primary key (tenant_id, id),
  foreign key (tenant_id, wallet_id) references wallets (tenant_id, id) on delete cascade
);
create index wallet_signatures_listed on wallet_signatures
  (tenant_id, wallet_id, created_at desc, id desc);

-- What counts against the budgets: a row for each asset of a signature.
create table wallet_spends (
  tenant_id uuid not null,
  signature_id uuid not null,
  wallet_id uuid not null,
  network text not null,
  asset text not null,
  amount numeric(78) not null check (amount >= 0),
  spent_at timestamptz not null,
  primary key (tenant_id, signature_id, asset),
  foreign key (tenant_id, signature_id) references wallet_signatures (tenant_id, id)
    on delete cascade
);
create index wallet_spends_counted on wallet_spends
  (tenant_id, wallet_id, network, asset, spent_at) include (amount);

do $$
declare
  protected text;
begin
  foreach protected in array
    array['wallets', 'wallet_budgets', 'wallet_signatures', 'wallet_spends'] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
end
$$;
