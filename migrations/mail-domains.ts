/**
 * Converts domains of stored addresses to A-labels, which the service stores and compares. Every `svc migrate` does it,
 * because processes of an older release store domains in letters. One statement converts one row,
 * so no request waits.
 */
import type { Client } from 'pg'
import { soughtEmail, storedName } from '../actors/domain/email.js'
import type { Logger } from '../runtime/kernel/log.js'

/**
 * Converts the address of an account, and its key. An account keeps its key's tenant. Where another account has the key
 * already, people are not merged: the account gets the key of a tenant in which it is the only one of the two
 * (storage/identity/email-keys.ts). `svc doctor` lists such accounts.
 */
const ACCOUNT = `update accounts a set email = $2, typed_email = coalesce(a.typed_email, a.email),
    email_key = case
      when a.email_key <> lower(a.email) then lower($2) || substr(a.email_key, length(lower(a.email)) + 1)
      when not exists (select from accounts b where b.email_key = lower($2)) then lower($2)
      else lower($2) || '/' || coalesce((
        select u.tenant_id from tenant_users u where u.account_id = a.id and u.status <> 'removed'
          and not exists (select from accounts b
            where b.email_key = lower($2) || '/' || u.tenant_id)
          and not exists (select from accounts b
            join tenant_users o on o.account_id = b.id and o.tenant_id = u.tenant_id and o.status <> 'removed'
            where b.email_key = lower($2))
        order by u.last_login_at desc nulls last, u.created_at limit 1), a.id) end
  where a.id = $1 and a.email = $3`

type Place = {
  readonly table: string
  readonly keys: readonly [string, string]
  readonly column: string
  readonly set: string
}

/** Other rows with an address. A row that would be a second one of its address stays as it is. */
const PLACES: readonly Place[] = [
  {
    table: 'tenant_users',
    keys: ['tenant_id', 'id'],
    column: 'invited_as',
    set: 'invited_as = $3',
  },
  {
    table: 'mail_tickets',
    keys: ['tenant_id', 'id'],
    column: 'email_key',
    set: 'email_key = lower($3)',
  },
  {
    table: 'organization_members',
    keys: ['organization_id', 'id'],
    column: 'email',
    set: 'email = $3',
  },
  { table: 'upstream_identities', keys: ['account_id', 'id'], column: 'email', set: 'email = $3' },
  {
    table: 'scim_users',
    keys: ['tenant_id', 'user_id'],
    column: 'user_name',
    set: 'user_name = $3, user_name_key = lower($3)',
  },
]

/** @returns how many rows were converted. */
export async function convertMailDomains(client: Client, log: Logger): Promise<number> {
  await client.query("set svc.scope = 'system'")
  let converted = await convertAccounts(client)
  for (const place of PLACES) converted += await convertPlace(client, place)
  converted += await convertScimEmails(client)
  if (converted > 0) log.info({ rows: converted }, 'converted mail domains to A-labels')
  return converted
}

/** Only a text with other characters than ASCII has more bytes than characters. */
const hasLetters = (column: string) => `octet_length(${column}) <> length(${column})`

async function convertAccounts(client: Client): Promise<number> {
  let converted = 0
  const { rows } = await client.query<{ id: string; email: string }>(
    `select id, email from accounts where ${hasLetters('email')} order by created_at, id`,
  )
  for (const { id, email } of rows) {
    const stored = soughtEmail(email)
    if (stored === undefined || stored === email) continue
    const { rowCount } = await client.query(ACCOUNT, [id, stored, email])
    converted += rowCount ?? 0
  }
  return converted
}

async function convertPlace(
  client: Client,
  { table, keys: [owner, key], column, set }: Place,
): Promise<number> {
  let converted = 0
  const { rows } = await client.query<{ owner: string; key: string; address: string }>(
    `select ${owner} as owner, ${key} as key, ${column} as address from ${table} where ${hasLetters(column)}`,
  )
  for (const { owner: of, key: id, address } of rows) {
    const stored = storedName(address)
    if (stored === address) continue
    try {
      const { rowCount } = await client.query(
        `update ${table} set ${set} where ${owner} = $1 and ${key} = $2 and ${column} = $4`,
        [of, id, stored, address],
      )
      converted += rowCount ?? 0
    } catch (error) {
      if ((error as { code?: unknown }).code !== UNIQUE_VIOLATION) throw error
    }
  }
  return converted
}

const UNIQUE_VIOLATION = '23505'

async function convertScimEmails(client: Client): Promise<number> {
  let converted = 0
  type Row = { owner: string; key: string; emails: readonly Record<string, unknown>[] }
  const { rows } = await client.query<Row>(
    `select tenant_id as owner, user_id as key, attributes -> 'emails' as emails from scim_users
     where jsonb_typeof(attributes -> 'emails') = 'array' and ${hasLetters("(attributes ->> 'emails')")}`,
  )
  for (const { owner, key, emails } of rows) {
    const stored = emails.map((one) =>
      typeof one['value'] === 'string' ? { ...one, value: storedName(one['value']) } : one,
    )
    const [after, before] = [JSON.stringify(stored), JSON.stringify(emails)]
    if (after === before) continue
    const { rowCount } = await client.query(
      `update scim_users set attributes = jsonb_set(attributes, '{emails}', $3)
       where tenant_id = $1 and user_id = $2 and attributes -> 'emails' = $4::jsonb`,
      [owner, key, after, before],
    )
    converted += rowCount ?? 0
  }
  return converted
}
