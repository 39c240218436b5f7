-- Old processes may keep running: they register agents by DIDs. A registration that names an agent of a chain fails there.

-- The agent of a registry that a registration names, and the block at which its owner was read.
alter table pow_challenges add column chain_anchor text, add column chain_block bigint;
alter table pow_challenges
  drop constraint pow_challenges_anchor_type_check,
  add constraint pow_challenges_anchor_type_check
    check (anchor_type in ('did_key', 'did_web', 'erc8004')) not valid;

-- An old process must not write a DID down as an agent of a registry.
alter table agent_anchors add constraint agent_anchors_chain_check
  check ((type = 'erc8004') = (value like 'eip155:%')) not valid;

-- What the chain monitor looks for: the agents of registries that are anchors.
create table chain_anchors (
  tenant_id uuid not null,
  agent_id uuid not null,
  -- Chain (CAIP-2) and address in lower case. With the token it is the value of the anchor.
  registry text not null,
  -- ERC-721 token id, decimal.
  token text not null,
  -- Logs of later blocks are events of the agent.
  from_block bigint not null,
  primary key (tenant_id, registry, token),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create index chain_anchors_of_registry on chain_anchors (registry, token);
create index chain_anchors_of_agent on chain_anchors (tenant_id, agent_id);
alter table chain_anchors enable row level security;
alter table chain_anchors force row level security;
create policy tenant on chain_anchors using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- The logs that became events. A block can be read again, and a reorganization can move a log to another block.
create table chain_logs (
  tenant_id uuid not null,
  agent_id uuid not null,
  -- SHA-256 of the transaction hash, the content, and which of equal logs of the transaction it is.
  log bytea not null,
  block bigint not null,
  primary key (tenant_id, agent_id, log),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
alter table chain_logs enable row level security;
alter table chain_logs force row level security;
create policy tenant on chain_logs using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- Up to which block the registries of a chain were read.
create table registry_cursors (
  network text primary key,
  block bigint not null,
  -- Null: the next reading does not check that the block is still in the chain.
  block_hash text,
  -- Counts changes, so that a reading counts only if nothing changed meanwhile.
  version bigint not null,
  -- When a process last began to read.
  read_at timestamptz not null
);
