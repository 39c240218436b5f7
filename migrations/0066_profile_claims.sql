-- Old processes may keep running: they neither read nor write these columns.

-- Profile claims (OpenID Connect Core section 5.1).

-- The person's own values, for all tenants.
alter table accounts
  add column given_name text check (char_length(given_name) between 1 and 120),
  add column family_name text check (char_length(family_name) between 1 and 120),
  add column picture text check (char_length(picture) between 1 and 2048),
  add column locale text check (char_length(locale) between 1 and 35),
  add column zoneinfo text check (char_length(zoneinfo) between 1 and 64),
  add column phone_number text check (phone_number ~ '^\+[1-9][0-9]{1,14}$'),
  add column phone_number_verified boolean not null default false,
  add constraint accounts_phone check (phone_number is not null or not phone_number_verified);

-- A tenant's own values for its user, which win over those of the account in this tenant only.
alter table tenant_users
  add column given_name text check (char_length(given_name) between 1 and 120),
  add column family_name text check (char_length(family_name) between 1 and 120),
  add column picture text check (char_length(picture) between 1 and 2048),
  add column locale text check (char_length(locale) between 1 and 35),
  add column zoneinfo text check (char_length(zoneinfo) between 1 and 64),
  add column phone_number text check (phone_number ~ '^\+[1-9][0-9]{1,14}$'),
  add column phone_number_verified boolean not null default false,
  add constraint tenant_users_phone check (phone_number is not null or not phone_number_verified);
